//! The part of the page about the store.

use super::{Plot, Section, Table, beside, row, whole};

pub(super) const STORE: Section = Section {
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
