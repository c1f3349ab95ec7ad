//! One text, several questions: each step gets what the one before it gives, and branches run in parallel.
//!
//! `cargo run --example text_processing`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::error::Error;

use tidewheel::prelude::*;

fn tokenize(text: String) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn count_words(words: Vec<String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

fn most_frequent(counts: BTreeMap<String, usize>) -> Option<String> {
    // Of equally frequent words, the first of the alphabet wins.
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(word, _)| word)
}

fn workflow() -> Result<Workflow, BuildErrors> {
    Workflow::new("text_processing")
        .add(step("tokenize", tokenize))
        .add(step("count_words", count_words).after("tokenize"))
        .add(step("most_frequent", most_frequent).after("count_words"))
        .add(step("first_word", |words: Vec<String>| words.first().cloned()).after("tokenize"))
        .add(step("last_word", |words: Vec<String>| words.last().cloned()).after("tokenize"))
        .add(
            step("summary", |count: Option<String>, first: Option<String>, last: Option<String>| {
                let shown = |word: Option<String>| word.unwrap_or_else(|| "nothing".to_owned());
                format!("from {} to {}, mostly {}", shown(first), shown(last), shown(count))
            })
            .after(["most_frequent", "first_word", "last_word"]),
        )
        .build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let text = "The tide turns the wheel, and the wheel turns the mill.";
    let mut run = workflow()?.run("text-1");
    react_until_satisfied(&mut run, text.to_owned(), ReactOptions::new()).await?;
    for fact in run.productions().iter().filter(|fact| fact.producer.is_some()) {
        println!("{:<14} {}", fact.producer.unwrap_or_default(), fact.value.to_json()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(text: &str) -> String {
        let mut run = workflow().unwrap().run("test");
        run.react_until_satisfied(text.to_owned()).unwrap();
        run.result("summary").unwrap().unwrap()
    }

    #[test]
    fn a_text_is_summed_up() {
        assert_eq!(summary("Anybody want a peanut? A peanut!"), "from anybody to peanut, mostly a");
    }

    #[test]
    fn no_text_is_no_error() {
        assert_eq!(summary(""), "from nothing to nothing, mostly nothing");
    }
}
