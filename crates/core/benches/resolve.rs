//! How long it takes to find the policy of a node.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has failed")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tidewheel_core::policy::{self, Kind, Matcher, NodeInfo, Policy, Rules};
use tidewheel_testkit::figure;

/// Goal: at most 200 ns for 5 rules with a pattern among them. The last rule wins, so all are tried.
fn resolve(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("resolve");
    let node = NodeInfo::step("generate_narrative");
    figure::goal("resolve/rules/5", 200.0);
    for count in [1, 5, 100] {
        let rules = Rules::new(matchers(count).into_iter().map(|matcher| (matcher, Policy::llm()))).unwrap();
        assert_eq!(rules.resolve(&node).rule, Some(count - 1));
        group.bench_with_input(BenchmarkId::new("rules", count), &rules, |bencher, rules| {
            bencher.iter(|| rules.resolve(black_box(&node)).rule);
        });
    }
    // For comparison in the same run: what compiling the pattern at each resolution would cost.
    group.bench_function("rules/5_comparison_pattern_compiled_each_time", |bencher| {
        bencher.iter(|| {
            let matchers = matchers(5);
            matchers.iter().position(|matcher| matcher.matches(black_box(&node)))
        });
    });
    group.finish();
}

/// Names, with a pattern second, a kind third and everything last.
fn matchers(count: usize) -> Vec<Matcher> {
    let matcher = |index: usize| match index {
        last if last == count - 1 => policy::default(),
        1 => policy::pattern("^llm_"),
        2 => policy::kind(Kind::Condition),
        other => policy::name(format!("some_other_step_{other}")),
    };
    (0..count).map(matcher).collect()
}

criterion_group!(benches, resolve);
criterion_main!(benches);
