//! The graphs of `crates/runner/benches/parallel.rs`, run by dagrs: only the run is measured, not the making
//! of the graph. Nothing of Tidewheel is in here.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dagrs::{
    Action, Content, DefaultNode, EnvVar, Graph, InChannels, Node, NodeId, NodeTable, OutChannels, Output,
};
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 7;
const SIDE: usize = 100;

/// Adds what comes in.
struct Add;

#[async_trait]
impl Action for Add {
    async fn run(&self, inputs: &mut InChannels, outputs: &mut OutChannels, _: Arc<EnvVar>) -> Output {
        let parts: Vec<u64> = inputs
            .map(|part| part.ok().and_then(|content| content.into_inner::<u64>()).map_or(0, |value| *value))
            .await;
        let sum = parts.iter().fold(u64::from(parts.len() < 2), |sum, part| sum.wrapping_add(*part));
        outputs.broadcast(Content::new(sum)).await;
        Output::Out(Some(Content::new(sum)))
    }
}

fn main() {
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let layered = |node: usize| match node.checked_sub(SIDE) {
        None => vec![],
        Some(above) => vec![above, above - above % SIDE + (above + 1) % SIDE],
    };
    let chain = |node: usize| node.checked_sub(1).into_iter().collect();
    for (name, kind, parents) in [
        ("chain of 1,000", "chain", (0..1_000).map(chain).collect::<Vec<Vec<usize>>>()),
        ("chain of 10,000", "chain", (0..10_000).map(chain).collect()),
        ("layers, 100 x 100", "layers", (0..SIDE * SIDE).map(layered).collect()),
    ] {
        let mut times: Vec<Duration> = (0..ROUNDS).map(|_| round(&runtime, &parents)).collect();
        times.sort_unstable();
        let per_node = |time: Duration| time.as_nanos() / parents.len() as u128;
        let (best, median) = (per_node(times[0]), per_node(times[ROUNDS / 2]));
        tell(&format!("parallel/{kind}/dagrs/{}", parents.len()), &times, parents.len());
        println!("{name:<18} {:<30} {median:>7} ns/node, best {best:>7}", "dagrs 0.9.0");
    }
}

/// Adds the figure to those of the report, if there is one: the median per node, and how far the others are from it.
fn tell(id: &str, times: &[Duration], nodes: usize) {
    let Some(path) = std::env::var_os("TIDEWHEEL_BENCH_FILE") else { return };
    let per_node = |time: Duration| time.as_secs_f64() * 1e9 / nodes as f64;
    let median = per_node(times[times.len() / 2]);
    let mut far: Vec<f64> = times.iter().map(|time| (per_node(*time) - median).abs()).collect();
    far.sort_by(f64::total_cmp);
    let (spread, samples) = (far[far.len() / 2], times.len());
    let line = format!(
        "{{\"id\":\"{id}\",\"unit\":\"ns\",\"median\":{median},\"spread\":{spread},\"samples\":{samples}}}\n"
    );
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("the file of the figures can be written");
}

/// Makes the graph and returns how long its run takes. A graph runs once.
fn round(runtime: &Runtime, parents: &[Vec<usize>]) -> Duration {
    let mut table = NodeTable::default();
    let nodes: Vec<DefaultNode> = (0..parents.len())
        .map(|node| DefaultNode::with_action(format!("n{node}"), Add, &mut table))
        .collect();
    let ids: Vec<NodeId> = nodes.iter().map(Node::id).collect();
    let mut graph = Graph::new();
    for node in nodes {
        graph.add_node(node).expect("each node has its own id");
    }
    let mut children = vec![Vec::new(); parents.len()];
    for (node, parents) in parents.iter().enumerate() {
        for parent in parents {
            children[*parent].push(ids[node]);
        }
    }
    for (node, children) in children.into_iter().enumerate().filter(|(_, children)| !children.is_empty()) {
        graph.add_edge(ids[node], children).expect("both ends are there");
    }
    graph.set_env(EnvVar::new(table));
    let start = Instant::now();
    runtime.block_on(graph.async_start()).expect("the graph runs");
    start.elapsed()
}
