//! The documentation as a book: its table of contents is complete, and every link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::pages::{self, Page};

/// A link of a page: the line, the place that it leads to.
fn links(page: &Page) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in page.prose() {
        // What stands in backquotes is code, where `](` means nothing.
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in plain.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                links.push((number, target.to_owned()));
            }
        }
    }
    links
}

/// Returns the anchors of a page: those of its headings, as GitHub and mdBook make them.
fn anchors(page: &Page) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in page.prose() {
        let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()) else {
            continue;
        };
        let slug: String = heading
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect();
        let count = seen.entry(slug.clone()).or_default();
        anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    anchors
}

/// Puts a relative link onto the folder of its page, without looking at the disk.
fn resolved(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn every_link_leads_to_a_page_and_to_a_heading_that_exist() {
    let pages = pages::all();
    let known: BTreeMap<&str, &Page> = pages.iter().map(|page| (page.name.as_str(), page)).collect();
    let mut broken = Vec::new();
    let mut count = 0;
    for page in &pages {
        for (line, link) in links(page) {
            if link.starts_with("http://") || link.starts_with("https://") {
                continue;
            }
            count += 1;
            let (path, anchor) = link.split_once('#').map_or((link.as_str(), None), |(p, a)| (p, Some(a)));
            let target = if path.is_empty() { page.name.clone() } else { resolved(&page.name, path) };
            let is_there = match (known.get(target.as_str()), anchor) {
                (Some(to), Some(anchor)) => anchors(to).contains(anchor),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => pages::root().join(&target).exists(),
            };
            if !is_there {
                broken.push(format!("{}:{line}: {link}", page.name));
            }
            // The book has the pages and pictures of docs/ only, and no listings of folders.
            let is_of_book =
                target.starts_with("docs/") && (target.ends_with(".md") || target.ends_with(".svg"));
            if page.name.starts_with("docs/") && !is_of_book {
                broken.push(format!("{}:{line}: {link} leads out of the book", page.name));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(count > 100, "only {count} links were found");
}

#[test]
fn the_table_of_contents_has_every_page_once() {
    let pages = pages::all();
    let contents =
        pages.iter().find(|page| page.name == "docs/SUMMARY.md").expect("docs/SUMMARY.md is there");
    let mut listed: Vec<String> =
        links(contents).into_iter().map(|(_, link)| resolved(&contents.name, &link)).collect();
    listed.sort();
    let mut all: Vec<String> = pages.iter().map(|page| page.name.clone()).collect();
    all.retain(|name| name.starts_with("docs/") && *name != contents.name);
    assert_eq!(listed, all, "docs/SUMMARY.md on the left, the pages of docs/ on the right");
}

#[test]
fn the_readme_leads_to_the_table_of_contents() {
    let pages = pages::all();
    let readme = pages.iter().find(|page| page.name == "README.md").expect("README.md is there");
    assert!(
        links(readme).iter().any(|(_, link)| link == "docs/SUMMARY.md"),
        "the README does not lead to it"
    );
}

#[test]
fn every_page_begins_with_its_title_and_ends_with_a_line() {
    for page in pages::all() {
        let first = page.text.lines().next().unwrap_or_default();
        assert!(first.starts_with("# "), "{} begins with: {first}", page.name);
        assert!(page.text.ends_with('\n') && !page.text.ends_with("\n\n"), "{} has no proper end", page.name);
    }
}

#[test]
fn the_book_is_configured_to_read_what_is_tested() {
    let text = std::fs::read_to_string(pages::root().join("docs/book.toml")).expect("there is a book.toml");
    assert!(text.contains("src = \".\"") && text.contains("build-dir = \"../target/book\""), "{text}");
}

#[test]
fn anchors_are_those_of_github() {
    let text = "# A `b_c` (d), e!\n\n## A\n\n## A\n\n```text\n# none\n```\n".to_owned();
    let page = Page { name: "docs/a.md".to_owned(), text };
    assert_eq!(Vec::from_iter(anchors(&page)), ["a", "a-1", "a-b_c-d-e"]);
    assert_eq!(resolved("docs/guides/a.md", "../b.md"), "docs/b.md");
    assert!(Path::new(&resolved("docs/a.md", "./b/c.md")).ends_with("b/c.md"));
}
