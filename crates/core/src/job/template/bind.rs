//! What a command line gives to the parameters of a template: inputs by place, flags by name, `--set K=V`.

use std::collections::BTreeMap;

use super::load::Template;
use crate::document;

/// What a command line gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Inputs in their order.
    pub positional: Vec<String>,
    /// Flags without their dashes, and their values.
    pub named: Vec<(String, String)>,
    /// What stood behind `--set`.
    pub set: Vec<String>,
}

/// Why inputs do not fit a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// There are more inputs than the template takes.
    #[error("{template} takes {}, got {given}", count(known))]
    TooMany {
        /// The template.
        template: String,
        /// The parameters that it takes by place.
        known: Vec<String>,
        /// How many were given.
        given: usize,
    },
    /// There is no such flag.
    #[error("unknown flag `--{flag}` of {template}{}", hint(near.as_deref(), "--"))]
    UnknownFlag {
        /// The template.
        template: String,
        /// The flag.
        flag: String,
        /// A flag that was perhaps meant.
        near: Option<String>,
    },
    /// There is no such parameter.
    #[error("unknown parameter `{name}` of {template}{}", hint(near.as_deref(), ""))]
    UnknownParam {
        /// The template.
        template: String,
        /// The name.
        name: String,
        /// A parameter that was perhaps meant.
        near: Option<String>,
    },
    /// What stands behind `--set` sets nothing.
    #[error("`--set {text}` has no `=`: write --set NAME=VALUE")]
    NotSet {
        /// What stands there.
        text: String,
    },
    /// A parameter is given more than once.
    #[error("parameter `{name}` is given twice")]
    Twice {
        /// The parameter.
        name: String,
    },
}

/// A flag that a template has on its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag<'a> {
    /// The flag, without its dashes.
    pub flag: &'a str,
    /// The parameter that it sets.
    pub param: &'a str,
}

impl Template {
    /// Returns the parameters that are given by their place, in order.
    #[must_use]
    pub fn positional(&self) -> &[String] {
        &self.main().cli.positional
    }

    /// Returns the flags that it has, sorted.
    pub fn flags(&self) -> impl Iterator<Item = Flag<'_>> {
        self.main().cli.named.iter().map(|(flag, param)| Flag { flag, param })
    }

    /// Gives inputs to parameters. Parameters that get none are not in the answer.
    ///
    /// # Errors
    /// An input fits no parameter, or two fit the same.
    pub fn bind(&self, inputs: &Inputs) -> Result<BTreeMap<String, String>, BindError> {
        let template = || format!("template {}", self.id());
        let mut given = BTreeMap::new();
        let mut give = |name: &str, value: &str| match given.insert(name.to_owned(), value.to_owned()) {
            None => Ok(()),
            Some(_) => Err(BindError::Twice { name: name.to_owned() }),
        };
        let known = self.positional();
        if inputs.positional.len() > known.len() {
            let (known, given) = (known.to_vec(), inputs.positional.len());
            return Err(BindError::TooMany { template: template(), known, given });
        }
        for (name, value) in known.iter().zip(&inputs.positional) {
            give(name, value)?;
        }
        for (flag, value) in &inputs.named {
            let flags = &self.main().cli.named;
            let Some(name) = flags.get(flag) else {
                let all: Vec<&str> = flags.keys().map(String::as_str).collect();
                let near = document::nearest(flag, &all).map(str::to_owned);
                return Err(BindError::UnknownFlag { template: template(), flag: flag.clone(), near });
            };
            give(name, value)?;
        }
        for text in &inputs.set {
            let (name, value) =
                text.split_once('=').ok_or_else(|| BindError::NotSet { text: text.clone() })?;
            if !self.main().params.values.contains_key(name) {
                // Where the parameters themselves cannot be read, that is what has to be told.
                if self.main().params.has_more {
                    continue;
                }
                return Err(self.unknown(name));
            }
            give(name, value)?;
        }
        Ok(given)
    }

    /// Returns what to say about a parameter that is none.
    pub(super) fn unknown_param(&self, name: &str) -> String {
        self.unknown(name).to_string()
    }

    fn unknown(&self, name: &str) -> BindError {
        let all: Vec<&str> = self.main().params.values.keys().map(String::as_str).collect();
        let near = document::nearest(name, &all).map(str::to_owned);
        BindError::UnknownParam { template: format!("template {}", self.id()), name: name.to_owned(), near }
    }
}

fn count(known: &[String]) -> String {
    match known {
        [] => "no inputs by place".to_owned(),
        [one] => format!("one input ({one})"),
        several => format!("at most {} inputs ({})", several.len(), several.join(", ")),
    }
}

fn hint(near: Option<&str>, dashes: &str) -> String {
    near.map_or_else(String::new, |near| format!(" (did you mean `{dashes}{near}`?)"))
}
