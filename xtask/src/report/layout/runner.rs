//! The parts of the page about the runner, with a disk and without one.

use super::{Plot, Section, Table, beside, row, whole};

pub(super) const DURABLE: Section = Section {
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

pub(super) const MEMORY: Section = Section {
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
