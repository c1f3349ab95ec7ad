//! What jobs need around them: git, the configuration, the templates, the programs of agents.

use super::whole::{counted, some};
use crate::doctor::facts::{Complaint, Facts, Git};
use crate::doctor::finding::{Check, Finding};

/// The oldest git that has all that is asked of it.
const OLDEST: (u32, u32) = (2, 38);

/// Says whether git can be used.
pub(super) fn git(git: &Git) -> Vec<Finding> {
    let without = "Flows of commands run without it; worktrees, plans, commits and merges do not.";
    let (version, has_repository, has_identity) = match git {
        Git::Missing(why) => {
            return vec![
                Finding::warning(Check::Git, "git", format!("cannot be run: {why}"))
                    .todo(format!("Install git 2.38 or later. {without}")),
            ];
        }
        Git::Found { version, has_repository, has_identity } => (version, *has_repository, *has_identity),
    };
    let mut found = Vec::new();
    match numbers(version) {
        Some(numbers) if numbers >= OLDEST => {}
        Some(_) => found.push(
            Finding::warning(Check::Git, "git", format!("is too old: {version}"))
                .todo(format!("Install git 2.38 or later. {without}")),
        ),
        None => found.push(
            Finding::warning(Check::Git, "git", format!("does not say which version it is: {version}"))
                .todo("It has to be 2.38 or later; `git version` says what it is."),
        ),
    }
    if has_repository && !has_identity {
        found.push(Finding::warning(Check::Git, ".git/config", "git does not know who commits").todo(
            "`git config user.name NAME` and `git config user.email ADDRESS` tell it; without, \
                    jobs that commit fail.",
        ));
    }
    if found.is_empty() {
        let here = if has_repository {
            "this is a repository, and git knows who commits"
        } else {
            "this is no repository, and flows of commands need none"
        };
        found.push(Finding::fine(Check::Git, format!("{version}; {here}")));
    }
    found
}

/// Reads `git version 2.47.3`, also with words behind it.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let word = version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = word.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Says what is wrong with the configuration.
pub(super) fn config(facts: &Facts) -> Vec<Finding> {
    match &facts.config {
        None => vec![Finding::fine(Check::Config, "there is no config.toml, and what is usual counts")],
        Some(complaints) if complaints.is_empty() => {
            let lost = |(alias, file): &(String, String)| {
                Finding::warning(
                    Check::Config,
                    ".tidewheel/config.toml",
                    format!("the alias `{alias}` names `{file}`, and there is no such file"),
                )
                .todo("Mend the line under [commands], or put the file there.")
            };
            let found: Vec<Finding> = facts.lost_aliases.iter().map(lost).collect();
            if found.is_empty() {
                vec![Finding::fine(Check::Config, "config.toml is in order")]
            } else {
                found
            }
        }
        Some(complaints) => complaints.iter().map(|of| complained(Check::Config, of)).collect(),
    }
}

/// Says what is wrong with the templates.
pub(super) fn templates(facts: &Facts) -> Vec<Finding> {
    let (count, complaints) = &facts.templates;
    if !complaints.is_empty() {
        return complaints.iter().map(|of| complained(Check::Templates, of)).collect();
    }
    let said = match count {
        0 => "there are none in .tidewheel/workflows".to_owned(),
        count => format!("{} in .tidewheel/workflows, all in order", counted(*count, "template")),
    };
    vec![Finding::fine(Check::Templates, said)]
}

fn complained(check: Check, complaint: &Complaint) -> Finding {
    let Complaint { file, line, message, help } = complaint;
    let place = line.map_or_else(|| file.clone(), |line| format!("{file}:{line}"));
    let finding = Finding::broken(check, place, message.clone());
    let show = match check {
        Check::Config => "`tidewheel init --check` shows the place",
        _ => "`tidewheel run FLOW --check` shows the place",
    };
    match help {
        // Where the whole file is wrong, there is no place in it.
        Some(help) if line.is_none() => finding.todo(format!("{help}.")),
        Some(help) => finding.todo(format!("{help}; {show}.")),
        None => finding.todo(format!("{show}.")),
    }
}

/// Says whether the programs of the agents are there.
pub(super) fn agents(facts: &Facts) -> Vec<Finding> {
    let missing = facts.agents.iter().filter(|(_, _, is_found)| !is_found);
    let found: Vec<Finding> = missing
        .map(|(name, program, _)| {
            Finding::warning(
                Check::Agents,
                ".tidewheel/config.toml",
                format!("the program `{program}` of agent `{name}` is not found"),
            )
            .todo(format!("Install it, or put its directory into PATH, or mend [agents.{name}]."))
        })
        .collect();
    if !found.is_empty() {
        return found;
    }
    let names: Vec<&str> = facts.agents.iter().map(|(name, _, _)| name.as_str()).collect();
    let said = match names.len() {
        0 => "none is configured".to_owned(),
        _ => format!("{} ({}), and the programs are there", counted(names.len(), "agent"), some(&names)),
    };
    vec![Finding::fine(Check::Agents, said)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn versions_of_git_are_compared_by_their_numbers() {
        let level = |version: &str| {
            let facts = Git::Found { version: version.to_owned(), has_repository: true, has_identity: true };
            git(&facts)[0].level
        };
        for fine in [
            "git version 2.38.0",
            "git version 2.47.3",
            "git version 2.39.5 (Apple Git-154)",
            "git version 10.0.rc1",
        ] {
            assert_eq!(level(fine), Level::Fine, "{fine}");
        }
        for old in ["git version 2.37.9", "git version 1.99.1", "what", ""] {
            assert_eq!(level(old), Level::Warning, "{old}");
        }
    }
}
