//! All probes together.

use std::path::{Path, PathBuf};

use tidewheel_runner::git::{Call, Repository};
use tidewheel_store::jobs::{Checkup, Files, JobStore as _, JobStoreError, Trouble};

use super::{folder, trees, written};
use crate::doctor::facts::{Facts, Git, Kind, Store};
use crate::error::cause;
use crate::jobs::{How, Place};
use crate::store::{examine, now, with_causes};

/// What is looked at.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) place: Place,
    pub(crate) how: How,
    /// A library store beside it.
    pub(crate) store: Option<PathBuf>,
}

/// Looks at everything.
pub(crate) fn probe(wanted: &Wanted) -> Facts {
    let Wanted { place, how, store } = wanted;
    let data = folder::kind(&place.data);
    let (jobs, due) = match Files::open_existing(&place.data) {
        Ok(files) if data == Kind::Directory => {
            (files.checkup().map_err(|error| trouble(&error)), files.due().unwrap_or_default())
        }
        Ok(_) => (Ok(Checkup::default()), Default::default()),
        Err(error) => (Err(trouble(&error)), Default::default()),
    };
    let git = git(&place.root);
    let has_repository = matches!(&git, Git::Found { has_repository: true, .. });
    let written = written::written(place);
    Facts {
        now: now(),
        how: *how,
        data,
        jobs_folder: folder::kind(&place.data.join("jobs")),
        runs_folder: folder::kind(&place.data.join("jobs/runs")),
        is_closed: place.is_closed(),
        refusals: folder::refusals(&place.data, jobs.as_ref().ok()),
        space: folder::space(&place.data),
        skew: folder::skew(&place.data),
        trees: trees::trees(place, has_repository, jobs.as_ref().ok()),
        sentinels: trees::sentinels(place),
        jobs,
        due,
        git,
        config: written.config,
        templates: written.templates,
        lost_aliases: written.lost_aliases,
        agents: written.agents,
        store: store.as_ref().map(|path| Store {
            name: path.display().to_string(),
            examined: examine(path).map_err(|error| (error.message, error.hints.into_iter().next())),
        }),
        place: place.clone(),
    }
}

/// Says why the jobs cannot be read, with the place.
fn trouble(error: &JobStoreError) -> Trouble {
    let why = match error {
        JobStoreError::Io { source, .. } => format!("{error}: {}", cause(source)),
        JobStoreError::Record(_)
        | JobStoreError::Manifest(_)
        | JobStoreError::Json { .. }
        | JobStoreError::Held { .. }
        | JobStoreError::Broken => with_causes(error),
    };
    Trouble { why, ..Trouble::of(error) }
}

fn git(root: &Path) -> Git {
    let repository = Repository::at(root);
    match repository.answer(&Call::new(["version"])) {
        Ok(said) => Git::Found {
            version: String::from_utf8_lossy(&said).trim().to_owned(),
            has_repository: repository.top().is_ok(),
            has_identity: repository.check_identity().is_ok(),
        },
        Err(error) => Git::Missing(with_causes(&error)),
    }
}
