//! What stands where on the page, and what is said about it: names of figures, and no figure; explanations are written
//! here and nowhere else.

/// A part of the page.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) tables: &'static [Table],
    pub(crate) plots: &'static [Plot],
}

/// Figures, each beside what it is compared with.
pub(crate) struct Table {
    pub(crate) about: &'static str,
    pub(crate) rows: &'static [Row],
}

/// One figure.
pub(crate) struct Row {
    pub(crate) label: &'static str,
    pub(crate) id: &'static str,
    /// What was measured in the same run for comparison: what it is, and its figure.
    pub(crate) beside: &'static [(&'static str, &'static str)],
}

/// Figures over sizes.
pub(crate) struct Plot {
    /// The name of the picture, without its ending.
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    /// What a size counts.
    pub(crate) of: &'static str,
    /// What is drawn upwards.
    pub(crate) cost: &'static str,
    pub(crate) series: &'static [Series],
}

/// The figures whose names are a prefix and a size.
pub(crate) struct Series {
    pub(crate) label: &'static str,
    pub(crate) prefix: &'static str,
    pub(crate) share: Share,
}

/// What of a figure is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// As it was measured.
    Whole,
    /// What falls to each of the items that the size counts.
    PerItem,
}

/// How long a write takes until the disk has it.
pub(crate) const FLUSH: &str = "machine/fdatasync";
/// How long SQLite takes for a commit.
pub(crate) const COMMIT: &str = "machine/bare commit";

const fn row(label: &'static str, id: &'static str) -> Row {
    Row { label, id, beside: &[] }
}

const fn beside(
    label: &'static str,
    id: &'static str,
    beside: &'static [(&'static str, &'static str)],
) -> Row {
    Row { label, id, beside }
}

const fn whole(label: &'static str, prefix: &'static str) -> Series {
    Series { label, prefix, share: Share::Whole }
}

const fn each(label: &'static str, prefix: &'static str) -> Series {
    Series { label, prefix, share: Share::PerItem }
}

/// The page, from what decides to what people type.
pub(crate) const SECTIONS: [Section; 6] = [DECISION, CORE, DURABLE, MEMORY, STORE, JOBS];

const DECISION: Section = Section {
    title: "Decision",
    about: "What happens after an attempt is decided by one function, which only computes.\n\
            The backoff by hand is an addition and a shift, without limits, reasons or a circuit.",
    tables: &[
        Table {
            about: "One decision:",
            rows: &[
                beside("retry", "kernel/retry", BACKOFF_BY_HAND),
                beside("retry with jitter", "kernel/retry_with_jitter", BACKOFF_BY_HAND),
                row("retries are spent", "kernel/retries_spent"),
                row("the circuit is open", "kernel/circuit_open"),
                row("still running", "kernel/running"),
                row("retry 400 with a coefficient of 1.01", "kernel/retry_400_of_a_coefficient_of_1.01"),
            ],
        },
        Table {
            about: "A whole turn, and the policy of a node among rules:",
            rows: &[
                beside(
                    "turn from structs",
                    "turn/from_structs",
                    &[("the same with owned strings", "turn/from_structs_comparison_owned_strings")],
                ),
                beside("turn from JSON", "turn/from_json", PARSE_ONLY),
                beside("turn from JSON to JSON", "turn/from_json_to_json", PARSE_ONLY),
                row("policy among 1 rule", "resolve/rules/1"),
                beside(
                    "policy among 5 rules",
                    "resolve/rules/5",
                    &[(
                        "its pattern compiled each time",
                        "resolve/rules/5_comparison_pattern_compiled_each_time",
                    )],
                ),
                row("policy among 100 rules", "resolve/rules/100"),
            ],
        },
    ],
    plots: &[],
};

const BACKOFF_BY_HAND: &[(&str, &str)] = &[("backoff by hand", "kernel/retry_comparison_backoff_by_hand")];
const PARSE_ONLY: &[(&str, &str)] = &[("parsing the JSON only", "turn/from_json_comparison_parse_only")];

const CORE: Section = Section {
    title: "Core",
    about: "A workflow in memory, in one thread: trivial work, so that only the engine is measured.\n\
            The loop by hand calls as many boxed functions and keeps each value, and does nothing else.",
    tables: &[Table {
        about: "One item of 10,000:",
        rows: &[
            beside("step in a chain", "growth/chain/10000", LOOP_BY_HAND),
            beside("branch of a fan-out with its join", "growth/fan-out and join/10000", LOOP_BY_HAND),
            beside("item of map and reduce", "growth/map and reduce/10000", LOOP_BY_HAND),
            beside("rule that is woken", "growth/rules, one fact/10000", LOOP_BY_HAND),
            beside("input of an accumulator", "growth/accumulator/10000", LOOP_BY_HAND),
            row("event that is replayed", "growth/replay, per event/10000"),
            row("event that is replayed from JSON", "growth/replay of JSON, per event/10000"),
            row("item that is undone", "growth/undo, one input/10000"),
            row("input that is undone", "growth/undo, many inputs/10000"),
            row("memory of a fact in a chain", "growth bytes/chain/10000"),
        ],
    }],
    plots: &[
        Plot {
            file: "bench-core-run",
            title: "A workflow runs: time per item",
            about: "",
            of: "items",
            cost: "time per item",
            series: &[
                whole("chain", "growth/chain/"),
                whole("fan-out and join", "growth/fan-out and join/"),
                whole("map and reduce", "growth/map and reduce/"),
                whole("rules", "growth/rules, one fact/"),
                whole("accumulator", "growth/accumulator/"),
                whole("loop by hand", "growth/loop by hand/"),
            ],
        },
        Plot {
            file: "bench-core-replay",
            title: "A workflow is replayed or undone: time per event or item",
            about: "",
            of: "items",
            cost: "time per event or item",
            series: &[
                whole("replay", "growth/replay, per event/"),
                whole("replay of JSON", "growth/replay of JSON, per event/"),
                whole("undo, one input", "growth/undo, one input/"),
                whole("undo, many inputs", "growth/undo, many inputs/"),
            ],
        },
        Plot {
            file: "bench-core-memory",
            title: "Memory per fact, beside its value",
            about: "",
            of: "items",
            cost: "memory per fact",
            series: &[
                whole("chain", "growth bytes/chain/"),
                whole("fan-out and join", "growth bytes/fan-out and join/"),
                whole("map and reduce", "growth bytes/map and reduce/"),
                whole("accumulator", "growth bytes/accumulator/"),
                whole("replay of JSON", "growth bytes/replay of JSON, per event/"),
            ],
        },
    ],
};

const LOOP_BY_HAND: &[(&str, &str)] = &[("loop by hand", "growth/loop by hand/10000")];

const DURABLE: Section = Section {
    title: "Runner, durable",
    about: "Runs of three steps on SQLite, with WAL and a flush at each commit: what was acknowledged survives a loss of \
            power.\n\
            A run of three steps needs four commits if nobody shares them; runs at the same time do.",
    tables: &[
        Table {
            about: "One run after the other:",
            rows: &[
                beside(
                    "run of 3 steps, median",
                    "durable/one at a time",
                    &[("4 bare commits of SQLite", "durable/4 bare commits")],
                ),
                row("run of 3 steps, 99 of 100 are faster", "durable/one at a time, p99"),
                row("commits of a run", "durable/one at a time, commits"),
            ],
        },
        Table {
            about: "Many at once:",
            rows: &[
                beside("steps with 50 clients", "durable/steps per second/50", COMMITS),
                row("time of a run with 50 clients", "durable/time of a run/50"),
                row("commits of a run with 50 clients", "durable/commits of a run/50"),
                beside("steps with 1,000 clients", "durable/steps per second/1000", COMMITS),
                row("time of a run with 1,000 clients", "durable/time of a run/1000"),
                row("commits of a run with 1,000 clients", "durable/commits of a run/1000"),
            ],
        },
        Table {
            about: "Waiting, which should cost nothing; times of processors are in steps of 10 ms:",
            rows: &[
                row("processor, 10,000 waiting runs for 20 s", "waiting runs/processor"),
                row("wake-ups, 10,000 waiting runs for 20 s", "waiting runs/wake-ups"),
            ],
        },
    ],
    plots: &[Plot {
        file: "bench-durable-resume",
        title: "A durable run is taken up again: time per event",
        about: "The comparison reads the same rows from the same file and parses their JSON, and builds no run.",
        of: "events",
        cost: "time per event",
        series: &[
            whole("resume of a run", "durable/resume/"),
            whole("rows read and parsed by hand", "durable/resume by hand/"),
        ],
    }],
};

const COMMITS: &[(&str, &str)] =
    &[("bare commits of SQLite, one after the other", "machine/bare commits per second")];

const MEMORY: Section = Section {
    title: "Runner, in memory",
    about: "The same runs without a disk, the parallel loop over graphs of additions, and what a policy adds to a call.\n\
            Bare tasks are the same graph as one task of tokio for each node, with a channel for each edge; dagrs is \
            another engine on tokio, which runs the same graphs.",
    tables: &[
        Table {
            about: "Per node of a graph:",
            rows: &[
                beside("1,000 in parallel", "parallel/wide/parallel, inline/1000", WIDE),
                beside("chain of 1,000", "parallel/chain/parallel, inline/1000", CHAIN_1000),
                beside("chain of 10,000", "parallel/chain/parallel, inline/10000", CHAIN_10000),
                beside("100 layers of 100", "parallel/layers/parallel, inline/10000", LAYERS),
                beside(
                    "100 layers of 100, async steps",
                    "parallel/layers/parallel, async steps/10000",
                    &[("bare tasks that yield once", "parallel/layers/bare tasks that yield once/10000")],
                ),
                row("100 layers of 100, threads", "parallel/layers/parallel, threads/10000"),
                row(
                    "100 layers of 100, priority and limits",
                    "parallel/layers/inline, priority and limits/10000",
                ),
            ],
        },
        Table {
            about: "Whole runs:",
            rows: &[
                beside(
                    "runs of 3 steps, 1,000 at once",
                    "memory/runs per second",
                    &[("bare tasks of 3 calls", "memory/bare tasks per second")],
                ),
                row("one run with 1,000 parallel steps", "memory/1000 parallel steps"),
            ],
        },
        Table {
            about: "One async call under a policy:",
            rows: &[
                beside("default policy", "driver/default policy", PLAIN_CALL),
                beside("3 retries, unused", "driver/3 retries, unused", PLAIN_CALL),
                beside("timeout", "driver/timeout", PLAIN_CALL),
                beside("timeout, 3 retries, fallback", "driver/timeout, 3 retries, fallback", PLAIN_CALL),
                row("allocations more, default policy", "driver allocations/default policy"),
                row(
                    "allocations more, timeout, 3 retries, fallback",
                    "driver allocations/timeout, 3 retries, fallback",
                ),
            ],
        },
        Table {
            about: "100,000 timers:",
            rows: &[
                row("processor in a second of waiting", "timers/processor"),
                row("wake-ups in a second of waiting", "timers/wake-ups"),
                row("late by, median", "timers/late, median"),
                row("late by, 99 of 100 are less", "timers/late, p99"),
                row("late by, at most", "timers/late, most"),
            ],
        },
    ],
    plots: &[Plot {
        file: "bench-parallel-chain",
        title: "A chain in the parallel loop: time per node",
        about: "",
        of: "nodes",
        cost: "time per node",
        series: &[
            whole("parallel loop, inline", "parallel/chain/parallel, inline/"),
            whole("parallel loop, threads", "parallel/chain/parallel, threads/"),
            whole("serial loop of core", "parallel/chain/serial loop of core/"),
            whole("bare tasks and channels", "parallel/chain/bare tasks and channels/"),
            whole("dagrs", "parallel/chain/dagrs/"),
        ],
    }],
};

const PLAIN_CALL: &[(&str, &str)] = &[("plain call", "driver/execute_async")];
const WIDE: &[(&str, &str)] = &[
    ("serial loop of core", "parallel/wide/serial loop of core/1000"),
    ("bare tasks", "parallel/wide/bare tasks and channels/1000"),
];
const CHAIN_1000: &[(&str, &str)] = &[
    ("serial loop of core", "parallel/chain/serial loop of core/1000"),
    ("bare tasks", "parallel/chain/bare tasks and channels/1000"),
    ("dagrs", "parallel/chain/dagrs/1000"),
];
const CHAIN_10000: &[(&str, &str)] = &[
    ("serial loop of core", "parallel/chain/serial loop of core/10000"),
    ("bare tasks", "parallel/chain/bare tasks and channels/10000"),
    ("dagrs", "parallel/chain/dagrs/10000"),
];
const LAYERS: &[(&str, &str)] = &[
    ("serial loop of core", "parallel/layers/serial loop of core/10000"),
    ("bare tasks", "parallel/layers/bare tasks and channels/10000"),
    ("dagrs", "parallel/layers/dagrs/10000"),
];

const STORE: Section = Section {
    title: "Store",
    about: "The log of events on SQLite with a flush at each commit, and in memory.",
    tables: &[
        Table {
            about: "Appends of one event:",
            rows: &[
                beside("calls of 1", "append/calls/1", BARE),
                beside("calls of 10", "append/calls/10", BARE),
                beside("calls of 100", "append/calls/100", BARE),
                beside("calls of 1,000", "append/calls/1000", BARE),
                beside("10 callers at once", "append/callers/10", BARE),
                beside("100 callers at once", "append/callers/100", BARE),
                beside("500 callers at once", "append/callers/500", BARE),
                row("in memory, calls of 1", "append/memory/1"),
                row("in memory, calls of 100", "append/memory/100"),
            ],
        },
        Table {
            about: "One call beside another process that writes all the time:",
            rows: &[row("send", "append/beside a writer, send"), row("list", "append/beside a writer, list")],
        },
    ],
    plots: &[
        Plot {
            file: "bench-store-log",
            title: "A log grows: time per event",
            about: "Appends are calls of 100 events; bare SQLite inserts 100 rows in each commit, and reads them.",
            of: "events in the log",
            cost: "time per event",
            series: &[
                whole("append", "log/append/"),
                whole("append, bare SQLite", "log/append, bare/"),
                whole("read", "log/read/"),
                whole("read, bare SQLite", "log/read, bare/"),
            ],
        },
        Plot {
            file: "bench-store-calls",
            title: "One commit for many: appends per second",
            about: "Each call or all callers together share a flush of the disk.",
            of: "appends in a call, or callers",
            cost: "appends per second",
            series: &[
                whole("appends in one call", "append/calls/"),
                whole("callers at once", "append/callers/"),
            ],
        },
    ],
};

const BARE: &[(&str, &str)] = &[("bare SQLite, one event per commit", "append/bare SQLite")];

const JOBS: Section = Section {
    title: "Jobs",
    about: "Jobs are processes, and their records are files.\n\
            Make and ninja run the same graphs in the same run with two processes at once, and keep nothing of what \
            happened.",
    tables: &[
        Table {
            about: "Per node, from the command that starts the run to its end; each node is `true`:",
            rows: &[
                beside("chain of 50", "jobs/chain/0", CHAIN_PEERS),
                beside("chain of 50 over 10,000 old records", "jobs/chain/10000", CHAIN_PEERS),
                beside("100 at once", "jobs/fan-out/100", FAN_100),
                beside("1,000 at once", "jobs/fan-out/1000", FAN_1000),
            ],
        },
        Table {
            about: "Whole commands over 10,000 finished jobs:",
            rows: &[
                row("`--version`, which does nothing", "jobs/version"),
                beside("`tick` with nothing to do", "jobs/history/tick, whole command/10000", VERSION),
                beside("`jobs list`", "jobs/history/jobs list --format table/10000", VERSION),
                beside("`jobs list --format json`", "jobs/history/jobs list --format json/10000", VERSION),
                beside("`jobs schedule`", "jobs/history/jobs schedule/10000", VERSION),
                beside("`jobs show`", "jobs/history/jobs show NODE/10000", VERSION),
                beside("`jobs explain`", "jobs/history/jobs explain NODE/10000", VERSION),
                beside("`runs list`", "jobs/history/runs list/10000", VERSION),
                beside("`runs show`", "jobs/history/runs show RUN/10000", VERSION),
                beside("`runs timeline`", "jobs/history/runs timeline RUN/10000", VERSION),
                beside("`graph`", "jobs/history/graph RUN/10000", VERSION),
            ],
        },
        Table {
            about: "Records as files, in process:",
            rows: &[
                beside(
                    "no-op tick over 10,000 finished jobs",
                    "jobs/history/no-op tick in process/10000",
                    &[],
                ),
                beside(
                    "write 1 record",
                    "store jobs/write/1",
                    &[("a file by hand", "store jobs/write by hand/1")],
                ),
                beside(
                    "write 100 records",
                    "store jobs/write/100",
                    &[("100 files by hand", "store jobs/write by hand/100")],
                ),
                row("enqueue a run of 100", "store jobs/enqueue/100"),
                beside(
                    "list 10,000 records, fresh process",
                    "store jobs/list, fresh/10000",
                    &[("10,000 files parsed by hand", "store jobs/list by hand/10000")],
                ),
                row("list 10,000 records, goes on", "store jobs/list, goes on/10000"),
                row("turn over 10,000 finished jobs, fresh process", "store jobs/turn, fresh/10000"),
                row("turn over 10,000 finished jobs, goes on", "store jobs/turn, goes on/10000"),
            ],
        },
        Table {
            about: "One pass over 10,000 jobs, in memory, per job; by hand is one walk over the same map that looks up \
                    the job before:",
            rows: &[
                beside("nothing changes in a chain", "settle/nothing_changes_in_a_chain/10000", WALK),
                beside("nothing changes at a lock", "settle/nothing_changes_at_a_lock/10000", WALK),
                beside("nothing changes with artifacts", "settle/nothing_changes_with_artifacts/10000", WALK),
                beside("a chain is blocked", "settle/a_chain_is_blocked/10000", WALK),
                beside("a chain is rewound", "settle/rewind_a_chain/10000", WALK),
            ],
        },
    ],
    plots: &[
        Plot {
            file: "bench-jobs-settle",
            title: "One pass over jobs: time per job",
            about: "",
            of: "jobs",
            cost: "time per job",
            series: &[
                whole("a chain", "settle/nothing_changes_in_a_chain/"),
                whole("a lock", "settle/nothing_changes_at_a_lock/"),
                whole("artifacts", "settle/nothing_changes_with_artifacts/"),
                whole("a chain is blocked", "settle/a_chain_is_blocked/"),
                whole("a chain is rewound", "settle/rewind_a_chain/"),
                whole("walk by hand", "settle/comparison_walk_by_hand/"),
            ],
        },
        Plot {
            file: "bench-jobs-records",
            title: "Records as files: time per record",
            about: "A turn over finished jobs reads none of them, so that its share for each falls.",
            of: "finished jobs",
            cost: "time per record",
            series: &[
                each("index built anew", "store jobs/index built anew/"),
                each("list, fresh process", "store jobs/list, fresh/"),
                each("list, goes on", "store jobs/list, goes on/"),
                each("turn, fresh process", "store jobs/turn, fresh/"),
                each("files parsed by hand", "store jobs/list by hand/"),
            ],
        },
        Plot {
            file: "bench-jobs-history",
            title: "Commands over a growing history: whole time",
            about: "What shows one thing or only what is active should not grow; what lists everything grows with it.",
            of: "finished jobs",
            cost: "time of the command",
            series: &[
                whole("tick in process", "jobs/history/no-op tick in process/"),
                whole("tick", "jobs/history/tick, whole command/"),
                whole("jobs schedule", "jobs/history/jobs schedule/"),
                whole("jobs show", "jobs/history/jobs show NODE/"),
                whole("runs list", "jobs/history/runs list/"),
                whole("jobs list as JSON", "jobs/history/jobs list --format json/"),
            ],
        },
    ],
};

const CHAIN_PEERS: &[(&str, &str)] = &[("make -j2", "jobs/chain/make"), ("ninja -j2", "jobs/chain/ninja")];
const FAN_100: &[(&str, &str)] =
    &[("make -j2", "jobs/fan-out/make/100"), ("ninja -j2", "jobs/fan-out/ninja/100")];
const FAN_1000: &[(&str, &str)] =
    &[("make -j2", "jobs/fan-out/make/1000"), ("ninja -j2", "jobs/fan-out/ninja/1000")];
const VERSION: &[(&str, &str)] = &[("`--version`", "jobs/version")];
const WALK: &[(&str, &str)] = &[("walk by hand", "settle/comparison_walk_by_hand/10000")];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_picture_has_a_name_of_its_own_and_few_lines() {
        let mut names = BTreeSet::new();
        for plot in SECTIONS.iter().flat_map(|section| section.plots) {
            assert!(names.insert(plot.file), "{}", plot.file);
            assert!((1..=6).contains(&plot.series.len()), "{}", plot.file);
            assert!(plot.series.iter().all(|series| series.prefix.ends_with('/')), "{}", plot.file);
        }
    }

    #[test]
    fn no_row_stands_twice_in_a_section() {
        for section in &SECTIONS {
            let rows: Vec<&str> =
                section.tables.iter().flat_map(|table| table.rows).map(|row| row.id).collect();
            assert_eq!(BTreeSet::from_iter(&rows).len(), rows.len(), "{}", section.title);
        }
    }
}
