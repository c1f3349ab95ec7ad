//! A template and everything that it imports, read as far as it says something about itself: its name, its parameters,
//! its command line, its imports. The files are asked for; nothing here opens one.

use std::collections::BTreeMap;

use super::head::{self, Head};
use super::scope::Found;
use crate::document::{self, Format, Problem, Problems, Report};

/// Larger than any template that a person writes.
pub const MOST_BYTES: usize = 1024 * 1024;
/// Deeper than anybody can follow.
pub const MOST_DEPTH: usize = 16;
/// More files than one template needs.
const MOST_FILES: usize = 256;

/// The text of a file, with the name that people know it by. Equal names are the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name.
    pub file: String,
    /// The text.
    pub text: String,
}

/// A template with everything that it imports.
///
/// ```
/// use tidewheel_core::job::template::{Source, Template};
///
/// let main = Source { file: "main.toml".to_owned(), text: "id = 't'\nversion = 'v1'\n[params]\nslug = ''".to_owned() };
/// let template = Template::load(main, |path, _from| Err(format!("no file {path}")))?;
/// assert_eq!(template.params().collect::<Vec<_>>(), [("slug", "")]);
/// # Ok::<(), tidewheel_core::Problems>(())
/// ```
#[derive(Clone, Debug)]
pub struct Template {
    /// The template itself stands first.
    pub(super) files: Vec<File>,
}

#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) source: Source,
    pub(super) head: Head,
}

impl Template {
    /// Reads a template. Its imports are asked for by the path that is written and the file that it is written in.
    ///
    /// # Errors
    /// Something is wrong with what the files say about themselves. Then everything is told that can be found without
    /// values for the parameters, each with its file and its place.
    pub fn load(
        source: Source,
        mut import: impl FnMut(&str, &str) -> Result<Source, String>,
    ) -> Result<Self, Problems> {
        let mut files: Vec<File> = Vec::new();
        let mut known: BTreeMap<String, usize> = BTreeMap::from([(source.file.clone(), 0)]);
        let mut waiting = vec![source];
        let mut problems = Vec::new();
        // Files get their numbers in the order in which they are asked for, which is the order of `waiting`.
        while files.len() < waiting.len() {
            let next = files.len();
            let source =
                std::mem::replace(&mut waiting[next], Source { file: String::new(), text: String::new() });
            let mut report = Report::of_file(&source.text, &source.file);
            let mut head = match read_head(&source, &mut report) {
                Ok(head) => head,
                Err(found) => {
                    problems.extend(found);
                    Head::unread()
                }
            };
            head.imports.retain_mut(|wanted| {
                let found = match import(&wanted.path, &source.file) {
                    Ok(found) => found,
                    Err(reason) => {
                        let path = format!("imports[{}].path", wanted.name);
                        let message = format!("cannot read `{}`: {reason}", wanted.path);
                        let help = "the path begins at the directory of the file that it stands in";
                        report.at(wanted.place.clone(), Problem::new(path, message).help(help));
                        head.lost.push(head::prefix(&wanted.name));
                        return false;
                    }
                };
                wanted.file = match known.get(&found.file) {
                    Some(number) => *number,
                    None if waiting.len() == MOST_FILES => {
                        let message = format!("is one import too many: at most {MOST_FILES} files");
                        report.at(wanted.place.clone(), Problem::new("imports", message));
                        head.lost.push(head::prefix(&wanted.name));
                        return false;
                    }
                    None => {
                        known.insert(found.file.clone(), waiting.len());
                        waiting.push(found);
                        waiting.len() - 1
                    }
                };
                true
            });
            problems.extend(report.into_problems());
            files.push(File { source, head });
        }
        let mut template = Self { files };
        problems.extend(template.cut_circles());
        problems.extend(template.strange_params());
        if problems.is_empty() {
            return Ok(template);
        }
        // Nobody mends a file twice who can mend it once: what its nodes say wrong is told, too.
        problems.extend(template.other_problems());
        let numbers: BTreeMap<&str, usize> = template
            .files
            .iter()
            .enumerate()
            .map(|(number, file)| (file.source.file.as_str(), number))
            .collect();
        problems.sort_by_key(|problem| {
            let file = problem.file.as_deref().and_then(|file| numbers.get(file));
            (file.copied(), problem.location.as_ref().map(|place| place.span.start))
        });
        Err(Problems::check(problems, ()).expect_err("invariant: there is one"))
    }

    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.main().id
    }

    /// Returns its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.main().version
    }

    /// Returns its parameters with what they are where nobody says, sorted by name.
    pub fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        self.main().params.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn main(&self) -> &Head {
        &self.files[0].head
    }

    /// Finds imports that come back to where they began, and those that go too deep. They are taken out, so that
    /// everything else can be looked at.
    fn cut_circles(&mut self) -> Vec<Problem> {
        let mut wrong: Vec<(usize, usize, String)> = Vec::new();
        // Each step of the way is a file with the number of its import that is looked at next.
        let mut way: Vec<(usize, usize)> = vec![(0, 0)];
        let mut depth_below: Vec<Option<usize>> = vec![None; self.files.len()];
        while let Some((file, next)) = way.last().copied() {
            let Some(import) = self.files[file].head.imports.get(next) else {
                let below = self.files[file].head.imports.iter();
                let deepest = below.filter_map(|import| depth_below[import.file]).max();
                depth_below[file] = Some(deepest.map_or(0, |depth| depth + 1));
                way.pop();
                continue;
            };
            if let Some(last) = way.last_mut() {
                last.1 += 1;
            }
            if let Some(start) = way.iter().position(|(on_way, _)| *on_way == import.file) {
                let names = way[start..].iter().map(|(on_way, _)| *on_way).chain([import.file]);
                let names: Vec<&str> = names.map(|on_way| self.files[on_way].source.file.as_str()).collect();
                wrong.push((file, next, format!("imports itself: {}", names.join(" -> "))));
                continue;
            }
            let below = depth_below[import.file];
            if way.len() + below.unwrap_or(0) > MOST_DEPTH {
                wrong.push((file, next, format!("goes deeper than {MOST_DEPTH} imports in a row")));
            } else if below.is_none() {
                way.push((import.file, 0));
            }
        }
        // One that is reached by several ways is told once; the last comes first, so that numbers stay what they are.
        wrong.sort_by_key(|(file, import, _)| std::cmp::Reverse((*file, *import)));
        wrong.dedup_by_key(|(file, import, _)| (*file, *import));
        let mut problems = Vec::with_capacity(wrong.len());
        for (number, at, message) in wrong {
            let File { source, head } = &mut self.files[number];
            let import = head.imports.remove(at);
            head.lost.push(head::prefix(&import.name));
            let mut report = Report::of_file(&source.text, &source.file);
            report.at(import.place, Problem::new(format!("imports[{}].path", import.name), message));
            problems.extend(report.into_problems());
        }
        problems
    }

    /// Finds imports that set a parameter which the imported template does not have.
    fn strange_params(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for file in &self.files {
            let mut report = Report::of_file(&file.source.text, &file.source.file);
            for import in &file.head.imports {
                let known = &self.files[import.file].head.params;
                let is_unknown = |(name, ..): &&(String, _, _)| matches!(known.find(name), Found::Unknown);
                for (name, _, place) in import.params.iter().filter(is_unknown) {
                    let path = format!("imports[{}].params.{name}", import.name);
                    let mut problem = Problem::new(path, format!("is no parameter of `{}`", import.path));
                    let names: Vec<&str> = known.values.keys().map(String::as_str).collect();
                    if let Some(near) = document::nearest(name, &names) {
                        problem = problem.help(format!("did you mean `{near}`?"));
                    }
                    report.at(place.clone(), problem);
                }
            }
            problems.extend(report.into_problems());
        }
        problems
    }
}

/// Reads the head of a file. What makes it no template at all comes as an error.
fn read_head(source: &Source, report: &mut Report<'_>) -> Result<Head, Vec<Problem>> {
    let of_file = |problem: &Problem| Problem { file: Some(source.file.clone()), ..problem.clone() };
    if source.text.len() > MOST_BYTES {
        let problem = Problem::new("", format!("is larger than {} MiB", MOST_BYTES / (1024 * 1024)));
        return Err(vec![of_file(&problem)]);
    }
    let node = document::read(&source.text, Format::Toml)
        .map_err(|found| found.all().iter().map(of_file).collect::<Vec<_>>())?;
    Ok(head::read(node, report))
}
