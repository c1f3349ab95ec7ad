//! Words of many documents, counted: a map over the documents, a reduce of the counts, and a total over days.
//!
//! `cargo run --example word_count`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::error::Error;

use tidewheel::prelude::*;

type Counts = BTreeMap<String, usize>;

fn count(document: String) -> Counts {
    let mut counts = Counts::new();
    for word in document.split_whitespace() {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
        if !word.is_empty() {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

fn merge(mut all: Counts, counts: Counts) -> Counts {
    for (word, count) in counts {
        *all.entry(word).or_default() += count;
    }
    all
}

fn top(counts: Counts) -> Vec<(String, usize)> {
    let mut words: Vec<_> = counts.into_iter().collect();
    words.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    words.truncate(3);
    words
}

fn workflow() -> Result<Workflow, BuildErrors> {
    Workflow::new("word_count")
        .add(map("count", count))
        .add(reduce("merge", Counts::new(), merge).after("count"))
        .add(step("top", top).after("merge"))
        .add(accumulator("so_far", Counts::new(), merge).after("merge"))
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let days = [
        ["The tide comes in.", "The tide goes out."].map(str::to_owned).to_vec(),
        ["The wheel turns with the tide.", "", "Then the wheel rests."].map(str::to_owned).to_vec(),
    ];
    let mut run = workflow()?.run("words");
    for documents in days {
        react_until_satisfied(&mut run, documents, ReactOptions::new()).await?;
        println!("today {:?}", run.result::<Vec<(String, usize)>>("top")?.unwrap_or_default());
    }
    println!("in all {:?}", run.result::<Counts>("so_far")?.unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn words_are_counted_over_documents_and_over_days() {
        let mut run = workflow().unwrap().run("test");
        react_until_satisfied(&mut run, documents(&["a b a", "b c."]), ReactOptions::new()).await.unwrap();
        let today = Counts::from([("a".to_owned(), 2), ("b".to_owned(), 2), ("c".to_owned(), 1)]);
        assert_eq!(run.result("merge").unwrap(), Some(today));
        react_until_satisfied(&mut run, documents(&["c", "C!"]), ReactOptions::new()).await.unwrap();
        assert_eq!(run.result("top").unwrap(), Some(vec![("c".to_owned(), 2)]));
        let so_far = Counts::from([("a".to_owned(), 2), ("b".to_owned(), 2), ("c".to_owned(), 3)]);
        assert_eq!(run.result("so_far").unwrap(), Some(so_far));
    }

    #[tokio::test]
    async fn no_documents_have_no_words() {
        let mut run = workflow().unwrap().run("test");
        react_until_satisfied(&mut run, documents(&[]), ReactOptions::new()).await.unwrap();
        assert_eq!(run.result("merge").unwrap(), Some(Counts::new()));
    }

    #[tokio::test]
    async fn many_documents_are_no_problem() {
        let mut run = workflow().unwrap().run("test");
        react_until_satisfied(&mut run, vec!["tide and wheel".to_owned(); 2_000], ReactOptions::new())
            .await
            .unwrap();
        let top: Vec<(String, usize)> = run.result("top").unwrap().unwrap();
        assert_eq!(top[0], ("and".to_owned(), 2_000));
    }
}
