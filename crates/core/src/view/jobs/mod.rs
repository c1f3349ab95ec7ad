//! Jobs and their runs as people and programs see them: data, and text where the text is fixed. Knows no terminal.

mod dag;
mod drawn;
pub mod explain;
mod field;
mod find;
mod flow;
mod graph;
mod layers;
mod list;
mod runs;
mod schedule;
mod short;
mod timeline;
mod watch;

pub use field::{Field, Known, LIST_FIELDS, SHOW_FIELDS, TABLE_FIELDS, show_json, status_line};
pub use find::{FindError, find, find_id, find_run, find_run_id};
pub use flow::{FlowAsk, FlowEdge, FlowLink, FlowNode, FlowPart, FlowView};
pub use list::{List, ListAsk, counted_number};
pub use runs::{RunCounts, RunLine, RunStatus, said_of_skipped_failures};
pub use schedule::{Row, Schedule, ScheduleAsk, ScheduleForm};
pub use short::ShortIds;
pub use timeline::{Timeline, TimelineAttempt, TimelineRow};
pub use watch::{Bucket, Buckets, latest_line, watched};
