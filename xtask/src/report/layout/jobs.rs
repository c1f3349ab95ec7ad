//! The part of the page about jobs.

use super::{Plot, Section, Table, beside, each, row, whole};

pub(super) const JOBS: Section = Section {
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
            file: "bench-jobs-over-a-run",
            title: "Commands over a whole run: time per job",
            about: "Two jobs of the run are processes that have to be ended; the others wait.",
            of: "jobs of the run",
            cost: "time per job",
            series: &[
                each("runs cancel", "jobs/over a run/runs cancel/"),
                each("runs retry", "jobs/over a run/runs retry/"),
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
