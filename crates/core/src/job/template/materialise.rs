//! Makes jobs of a template: one record for each node, and the manifest of their run. Nothing is written here.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::expand::{Expanded, Node, PLANS};
use super::label::Class;
use super::node::Gate;
use super::policies;
use crate::document::{Problem, Problems};
use crate::job::{
    After, Approval, Artifact, Branch, JobId, Limits, Loop, MANIFEST_VERSION, Manifest, ManifestNode,
    Metadata, Needed, NodeId, NodeOutcome, PinnedHead, Record, RunId, Schedule, TemplateSource, script_argv,
    script_shown, work_key,
};
use crate::policy::{ConcurrencyLimit, ExecutionMode, IdempotencyKey, OnFailure, Priority, RateLimit};
use crate::time::Timestamp;

/// How a template is enqueued.
#[derive(Clone, Debug)]
pub struct Enqueue {
    /// The run that it becomes.
    pub run: RunId,
    /// How the template was named.
    pub selector: String,
    /// The alias that it was named by, if it was one.
    pub alias: Option<String>,
    /// Where it was read, if it was a file.
    pub source: Option<TemplateSource>,
    /// Now.
    pub now: Timestamp,
    /// Who wants it.
    pub actor: String,
    /// What its first jobs are after.
    pub after: Vec<After>,
    /// Where its first jobs want a branch to stand.
    pub pin: Option<PinnedHead>,
    /// Where the branches stand that [`Expanded::pins`] names; `None` is the current one.
    pub heads: BTreeMap<Option<Branch>, PinnedHead>,
    /// Whether a person has to approve its first jobs.
    pub require_approval: bool,
    /// What is configured.
    pub config_snapshot: Option<Value>,
}

impl Enqueue {
    /// Returns a wish with nothing special in it.
    #[must_use]
    pub fn new(run: RunId, selector: &str, now: Timestamp, actor: &str) -> Self {
        Self {
            run,
            selector: selector.to_owned(),
            alias: None,
            source: None,
            now,
            actor: actor.to_owned(),
            after: Vec::new(),
            pin: None,
            heads: BTreeMap::new(),
            require_approval: false,
            config_snapshot: None,
        }
    }
}

/// The jobs of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its records, in the order of the nodes.
    pub records: Vec<Record>,
    /// What is kept of the run; to be written last.
    pub manifest: Manifest,
    /// The jobs that are after no other job of the run.
    pub roots: Vec<JobId>,
    /// The jobs that no other job of the run is after, without those that run only when something went wrong.
    pub sinks: Vec<JobId>,
}

impl Expanded {
    /// Makes the jobs of a run.
    ///
    /// # Errors
    /// The head of a branch is not known that a node is pinned to, or a name does not fit.
    pub fn materialise(&self, wish: &Enqueue) -> Result<Run, Problems> {
        let mut problems = Vec::new();
        let mut jobs: Vec<JobId> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            match JobId::of_node(&wish.run, &node.id) {
                Ok(id) => jobs.push(id),
                Err(error) => problems.push(Problem::new(format!("nodes[{}]", node.id), error.to_string())),
            }
        }
        Problems::check(problems, ())?;
        let everything = vec![true; self.nodes.len()];
        let (roots, sinks) = self.graph.ends(&everything);
        let mut is_root = vec![false; self.nodes.len()];
        roots.iter().for_each(|root| is_root[*root] = true);
        let ids = self.nodes.iter().map(|node| node.id.as_str()).zip(&jobs).collect();
        let shared = Shared { wish, jobs: &jobs, ids, hash: self.snapshot_hash() };
        let mut problems = Vec::new();
        let mut records = Vec::with_capacity(self.nodes.len());
        for (number, is_root) in is_root.into_iter().enumerate() {
            match self.record(number, is_root, &shared) {
                Ok(record) => records.push(record),
                Err(problem) => problems.push(*problem),
            }
        }
        let manifest = self.manifest(&shared);
        let ids = |numbers: Vec<usize>| numbers.into_iter().map(|number| jobs[number].clone()).collect();
        Problems::check(problems, Run { records, manifest, roots: ids(roots), sinks: ids(sinks) })
    }

    /// Returns the hash of everything that was expanded, with the policies: equal for every run of the same.
    #[must_use]
    pub fn snapshot_hash(&self) -> String {
        let node = |(number, node): (usize, &Node)| {
            let after = self.graph.after[number].iter();
            let after: Vec<Value> =
                after.map(|(before, policy)| json!([self.nodes[*before].id, policy])).collect();
            let loops = node.loops.iter();
            let loops: Vec<Value> = loops.map(|(on, to)| json!([on, self.nodes[*to].id])).collect();
            let mut kept = json!({
                "id": node.id,
                "name": node.name,
                "kind": node.kind,
                "uses": node.label.uses,
                "args": node.args,
                "after": after,
                "needs": node.needs,
                "produces": node.produces,
                "locks": node.locks,
                "preconditions": node.preconditions,
                "pinned_head": node.pin,
                "gates": node.gates,
                "retry": node.retry,
                "loops": loops,
                "missing_producer": node.missing_producer,
                "policy": node.policy.to_record(),
                "schemas": node.schemas,
            });
            if !node.errexit {
                kept["errexit"] = json!(false);
            }
            kept
        };
        let nodes: Vec<Value> = self.nodes.iter().enumerate().map(node).collect();
        let whole = json!({ "id": self.id, "version": self.version, "nodes": nodes });
        blake3::hash(whole.to_string().as_bytes()).to_hex().to_string()
    }

    fn record(&self, number: usize, is_root: bool, shared: &Shared<'_>) -> Result<Record, Box<Problem>> {
        let node = &self.nodes[number];
        let id = shared.jobs[number].clone();
        let step = u64::try_from(number).unwrap_or(u64::MAX).saturating_mul(NANOS_APART);
        let created_at = Timestamp::from_nanos(shared.wish.now.as_nanos().saturating_add(step));
        let mut record = Record::new(id.clone(), created_at);
        record.command = command(node);
        record.child_args = vec!["__workflow-node".to_owned(), "--job-id".to_owned(), id.to_string()];
        record.metadata = self.metadata(node, shared);
        record.config_snapshot.clone_from(&shared.wish.config_snapshot);
        record.schedule = self.schedule(number, is_root, created_at, shared)?;
        Ok(record)
    }

    fn metadata(&self, node: &Node, shared: &Shared<'_>) -> Metadata {
        let mut metadata = Metadata::default();
        metadata.set(Metadata::RUN_ID, shared.wish.run.as_str());
        metadata.set(Metadata::NODE_ID, node.id.as_str());
        if let Some(name) = &node.name {
            metadata.set(Metadata::NODE_NAME, name.as_str());
        }
        metadata.set(Metadata::TEMPLATE_SELECTOR, shared.wish.selector.as_str());
        metadata.set(Metadata::TEMPLATE_ID, self.id.as_str());
        metadata.set(Metadata::TEMPLATE_VERSION, self.version.as_str());
        if node.label.class == Class::Control {
            metadata.set(Metadata::CONTROL_POLICY, node.label.operation);
        } else {
            metadata.set(Metadata::EXECUTOR_CLASS, node.label.class.name());
            metadata.set(Metadata::EXECUTOR_OPERATION, node.label.operation);
        }
        metadata.set(Metadata::POLICY_SNAPSHOT_HASH, shared.hash.as_str());
        if !node.gates.is_empty() {
            metadata.set(Metadata::GATES, node.gates.iter().map(Gate::label).collect::<Vec<_>>());
        }
        metadata.set(Metadata::EXECUTION_ROOT, ".");
        if let Some(alias) = &shared.wish.alias {
            metadata.set(Metadata::COMMAND_ALIAS, alias.as_str());
        }
        let plan = PLANS.into_iter().find_map(|name| self.params.get(name).filter(|slug| !slug.is_empty()));
        if let Some(plan) = plan {
            metadata.set("plan", plan.as_str());
        }
        if !node.resolved.metadata.is_empty() {
            metadata.set("policy_metadata", node.resolved.metadata.clone());
        }
        metadata
    }

    fn schedule(
        &self,
        number: usize,
        is_root: bool,
        created_at: Timestamp,
        shared: &Shared<'_>,
    ) -> Result<Schedule, Box<Problem>> {
        let (node, wish) = (&self.nodes[number], shared.wish);
        let own = self.graph.after[number].iter();
        let mut after: Vec<After> = own
            .map(|(before, policy)| After { job_id: shared.jobs[*before].clone(), policy: *policy })
            .collect();
        if is_root {
            after.extend(wish.after.iter().cloned());
        }
        after.sort();
        after.dedup();
        let mut artifacts: Vec<Artifact> = Vec::new();
        for made in node.produces.values().flatten() {
            let made = shared.of_run(made);
            if !artifacts.contains(&made) {
                artifacts.push(made);
            }
        }
        let is_asked = (is_root && wish.require_approval) || is_approved_by_hand(node);
        let begins = node.resolved.scheduled_at.filter(|at| *at > wish.now);
        Ok(Schedule {
            after,
            dependencies: node.needs.iter().map(|need| Needed { artifact: shared.of_run(need) }).collect(),
            missing_producer: node.missing_producer,
            locks: node.locks.clone(),
            artifacts,
            pinned_head: pinned(node, is_root, wish)?,
            preconditions: node.preconditions.clone(),
            approval: is_asked.then(|| Approval::pending(&wish.actor, created_at)),
            limits: self.limits(node, wish),
            not_before: begins,
            ready_at: None,
            external: None,
            gave_up: false,
            looped_on: None,
            skipped_failure: false,
            wait_reason: None,
            waited_on: Vec::new(),
        })
    }

    fn limits(&self, node: &Node, wish: &Enqueue) -> Option<Box<Limits>> {
        let policy = &node.resolved;
        let named = |name: &Option<String>| name.clone().or_else(|| node.rule.clone());
        let key = node.key.as_ref().and_then(|(text, scope)| {
            let key = policies::filled_key(text, &self.scopes[*scope], node.id.as_str(), wish.run.as_str());
            // Invariant: it was filled once before, with another run.
            let key = key.ok()?;
            Some(match policy.idempotency_key.as_ref().and_then(IdempotencyKey::scope) {
                Some(scope) => work_key::of_scope(scope, &key),
                None => work_key::of_node(&self.id, node.id.as_str(), &key),
            })
        });
        let may_be_refused = policy.circuit_breaker.is_some() || policy.deadline.span().is_some();
        let knows_more =
            matches!(policy.on_failure, OnFailure::Skip | OnFailure::Pause | OnFailure::DeadLetter);
        let limits = Limits {
            priority: (policy.priority != Priority::Normal).then_some(policy.priority),
            concurrency: policy
                .concurrency_limit
                .as_ref()
                .map(|limit| ConcurrencyLimit { name: named(&limit.name), ..limit.clone() }),
            rate: policy
                .rate_limit
                .as_ref()
                .map(|limit| RateLimit { name: named(&limit.name), ..limit.clone() }),
            breaker: policy.circuit_breaker.clone(),
            delay_ms: policy.delay.map(|span| span.as_millis()),
            queue_timeout_ms: policy.queue_timeout.map(|span| span.as_millis()),
            idempotency_key: key,
            deadline: policy.deadline.span().map(|span| wish.now.saturating_add(span)),
            has_recourse: may_be_refused && (knows_more || policy.fallback.is_some()),
            external: policy.execution_mode == Some(ExecutionMode::External),
        };
        (limits != Limits::default()).then(|| Box::new(limits))
    }

    fn manifest(&self, shared: &Shared<'_>) -> Manifest {
        let node = |(node, job): (&Node, &JobId)| {
            let id = |number: &usize| self.nodes[*number].id.clone();
            let made = |(on, made): (&NodeOutcome, &Vec<Artifact>)| {
                (*on, made.iter().map(|made| shared.of_run(made)).collect())
            };
            let kept = ManifestNode {
                job_id: job.clone(),
                kind: node.kind,
                uses: node.label.uses.to_owned(),
                args: node.args.clone(),
                gates: node.gates.iter().filter_map(|gate| serde_json::to_value(gate).ok()).collect(),
                errexit: node.errexit && node.label.runs_scripts(),
                produces: node.produces.iter().map(made).collect(),
                policy: node.policy.to_record(),
                rule: node.rule.clone(),
                loops: node.loops.iter().map(|(on, to)| Loop { on: *on, to: id(to) }).collect(),
                retry: node.retry.clone(),
                routes: node.routes.iter().map(id).collect(),
                schemas: node.schemas.clone(),
                cuts: BTreeMap::new(),
            };
            (node.id.clone(), kept)
        };
        let nodes: BTreeMap<NodeId, ManifestNode> = self.nodes.iter().zip(shared.jobs).map(node).collect();
        Manifest {
            version: MANIFEST_VERSION,
            run_id: shared.wish.run.clone(),
            workflow_template_selector: shared.wish.selector.clone(),
            workflow_template_source: shared.wish.source.clone(),
            workflow_template_id: self.id.clone(),
            workflow_template_version: self.version.clone(),
            policy_snapshot_hash: shared.hash.clone(),
            created_at: shared.wish.now,
            params: self.params.clone(),
            nodes,
        }
    }
}

/// So far apart are the jobs of a run made, so that they are looked at in the order of their nodes.
const NANOS_APART: u64 = 1_000;

/// What all records of a run have in common.
struct Shared<'a> {
    wish: &'a Enqueue,
    jobs: &'a [JobId],
    /// The jobs of the nodes.
    ids: BTreeMap<&'a str, &'a JobId>,
    hash: String,
}

impl Shared<'_> {
    /// Returns an artifact of a node as it is in this run: a patch is that of a job.
    fn of_run(&self, artifact: &Artifact) -> Artifact {
        match artifact {
            Artifact::CommandPatch { job_id } => {
                let job_id =
                    self.ids.get(job_id.as_str()).map_or_else(|| job_id.clone(), ToString::to_string);
                Artifact::CommandPatch { job_id }
            }
            Artifact::PlanBranch { .. }
            | Artifact::PlanDoc { .. }
            | Artifact::PlanCommits { .. }
            | Artifact::TargetBranch { .. }
            | Artifact::MergeSentinel { .. }
            | Artifact::Custom { .. } => artifact.clone(),
        }
    }
}

/// Returns what a node does, for people.
fn command(node: &Node) -> Vec<String> {
    match (node.args.get("command"), node.args.get("script")) {
        (Some(Value::Array(words)), _) => {
            words.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
        }
        (Some(Value::String(script)), _) | (None, Some(Value::String(script))) => {
            script_shown(&script_argv(script, node.errexit))
        }
        _ => vec![node.label.uses.to_owned()],
    }
}

/// Tells whether a person has to approve a node, because it is a gate for that or has one.
fn is_approved_by_hand(node: &Node) -> bool {
    let of_gate = node.gates.iter().find_map(|gate| match gate {
        Gate::Approval { required } => Some(*required),
        Gate::Script { .. } | Gate::Cicd { .. } => None,
    });
    if node.label.operation == "gate.approval" {
        // What the node itself says counts before its gate, as it does when it runs.
        return node.args.get("required").and_then(Value::as_bool).or(of_gate).unwrap_or(true);
    }
    of_gate.unwrap_or(false)
}

/// Returns where a node wants a branch to stand.
fn pinned(node: &Node, is_root: bool, wish: &Enqueue) -> Result<Option<PinnedHead>, Box<Problem>> {
    let from_outside = wish.pin.clone().filter(|_| is_root);
    let Some(pin) = &node.pin else { return Ok(from_outside) };
    let fail = |message: String| Box::new(Problem::new(format!("nodes[{}].preconditions", node.id), message));
    let found = wish.heads.get(pin).ok_or_else(|| match pin {
        Some(branch) => fail(format!("the commit of branch `{branch}` is not known")),
        None => fail("the current branch is not known".to_owned()),
    })?;
    match from_outside {
        Some(other) if other != *found => {
            let message =
                format!("pins `{}`, and the run is to be pinned to `{}`", found.branch, other.branch);
            Err(fail(message))
        }
        Some(_) | None => Ok(Some(found.clone())),
    }
}
