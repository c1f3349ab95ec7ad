//! `tidewheel doctor`: whether all is in order, and what to do where it is not. Without `--fix` it only looks.

use std::path::PathBuf;

use clap::Args;

use crate::commands::policy::Format;
use crate::doctor::{Finding, Level, Wanted, json, judge, probe, repair, text};
use crate::error::Ending;
use crate::exit::Exit;
use crate::jobs::{DirArguments, Place, Settings};
use crate::output;
use crate::terminal;

/// Look whether all is in order, and say what to do where it is not
///
/// It looks at the data directory (where it is, rights, room on the disk, the
/// clock), at the jobs in it (locks, records, manifests, the index, supervisors
/// that are gone, what writers that died have left), at worktrees and merges
/// that no job owns, and at what is around: git, the configuration, templates,
/// the programs of agents. Each finding names its file and says what to do.
///
/// Without --fix nothing is changed and nothing is started. With it, what loses
/// nothing is repaired: the index is built anew, leftovers and enqueues that did
/// not finish within a day are removed, one pass settles jobs whose supervisors
/// are gone and starts what may start, and worktrees go that jobs were cut off
/// from making. Others that no job owns are named, and stay.
///
/// It ends with 0 if all is fine or there are only warnings, and with 1 if
/// something is broken.
///
/// Example:
///
///   $ tidewheel doctor
///   $ tidewheel doctor --fix
///   $ tidewheel doctor --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Repair what can be repaired without losing anything
    #[arg(long)]
    fix: bool,
    /// Look at the store of a program, too: a SQLite file
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    #[command(flatten)]
    dir: DirArguments,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Looks, and repairs if that is wanted.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let (place, how) = Place::found(&arguments.dir)?;
    if let Ok(Ok(settings)) = Settings::look(&place) {
        output::hide(settings.secrets().0);
    }
    let wanted = Wanted { place, how, store: arguments.store.clone() };
    let facts = probe(&wanted);
    let mut findings = judge(&facts);
    let mut repaired = Vec::new();
    if arguments.fix {
        repaired = repair(&findings, &facts);
        if !repaired.is_empty() {
            findings = judge(&probe(&wanted));
        }
    }
    match arguments.format {
        Format::Json => output::json(&json(&wanted.place, &repaired, &findings))?,
        Format::Text => {
            let width = terminal::table_canvas().map(|canvas| canvas.width);
            output::text(&text(&repaired, &findings, width))?;
            let count = findings.iter().filter(|finding| finding.repair.is_some()).count();
            if count > 0 && !arguments.fix {
                let what = if count == 1 { "one of these".to_owned() } else { format!("{count} of these") };
                output::hint(&format!("`tidewheel doctor --fix` repairs {what}."));
            }
        }
    }
    let is_broken = |finding: &Finding| finding.level == Level::Broken;
    Ok(if findings.iter().any(is_broken) { Exit::Failed } else { Exit::Succeeded })
}
