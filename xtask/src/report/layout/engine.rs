//! The parts of the page about what only computes: decisions, and workflows in one thread.

use super::{Plot, Section, Table, beside, row, whole};

pub(super) const DECISION: Section = Section {
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

pub(super) const CORE: Section = Section {
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
