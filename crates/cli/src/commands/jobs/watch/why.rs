//! Why a job is where it is: the page that `jobs explain` prints. It reads, and changes nothing.

use tidewheel_core::job::JobId;
use tidewheel_core::view::jobs::explain::{Explanation, Line, Part};
use tidewheel_store::jobs::JobStore as _;

use super::pages::Page;
use crate::error::CommandError;
use crate::jobs::{Opened, Place, Settings, explained_job, unfit};
use crate::output::harmless;

/// Finds out why a job is where it is now. Where that fails, the page says why.
pub(super) fn why(place: Place, settings: Settings, id: &JobId) -> Page {
    found(place, settings, id).unwrap_or_else(|error| {
        let text = format!("error[{}]: {}", error.code, harmless(&error.message));
        Page::new(format!("Why {id} is where it is"), vec![text])
    })
}

/// Returns the page of an explanation, under what could not be read for it.
pub(super) fn page(explained: &Explanation, unread: Vec<String>) -> Page {
    let mut parts = explained.page().to_vec();
    if !unread.is_empty() {
        let lines = unread.into_iter().map(|text| Line::Sentence(format!("warning: {text}"))).collect();
        parts.insert(0, Part { heading: None, lines });
    }
    Page::of_parts(format!("Why {} is {}", harmless(&explained.name), explained.status), parts)
}

fn found(place: Place, settings: Settings, id: &JobId) -> Result<Page, CommandError> {
    let opened = Opened::at(place, settings)?;
    let jobs = opened.store().jobs().map_err(|error| unfit(&error))?;
    let explained = explained_job(&opened, jobs, id)?;
    Ok(page(&explained.why, explained.unread))
}
