//! Reducers that may halt are looked at as items come, in the order of the list, so that a result does not wait for items
//! that do not count. What is found is an event; how far a look came is not.

use std::collections::BTreeMap;
use std::fmt;

use crate::event::LineageIx;
use crate::run::{Item, Run, index};
use crate::work::{Context, call_user};
use crate::workflow::{Look, NodeIx, Op};

/// How far reducers were looked at. It follows from the facts, so that a copy begins anew.
#[derive(Default)]
pub(crate) struct Looks(BTreeMap<(NodeIx, LineageIx), Looked>);

struct Looked {
    /// The first item that was not looked at.
    next: usize,
    /// `None` once the reducer failed: what becomes of that is found out when all items are there.
    look: Option<Look>,
}

impl Looks {
    /// Forgets a look at a list of which an item is awaited again, or that is done with.
    pub(crate) fn forget(&mut self, node: NodeIx, list: LineageIx) {
        self.0.remove(&(node, list));
    }
}

impl Clone for Looks {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Looks").field(&self.0.len()).finish()
    }
}

impl Run {
    /// Looks whether a reducer halts at one of the items that are there without a gap, and returns how many items count
    /// then.
    pub(crate) fn halts_after(&mut self, node: NodeIx, list: LineageIx) -> Option<u32> {
        let Op::FanIn { reducer, .. } = &self.graph.node(node).op else { return None };
        let begin = reducer.look.clone()?;
        let context = if reducer.wants_context { self.plain_context(node) } else { Context::empty() };
        let row = self.folds.get(&(node, list))?;
        let looked = self
            .looks
            .0
            .entry((node, list))
            .or_insert_with(|| Looked { next: 0, look: call_user(|| begin.call()()).ok() });
        let look = looked.look.as_mut()?;
        let mut halted = None;
        while let Some(item) = row.items.get(looked.next) {
            let answer = match item {
                Item::Awaited | Item::Failed => break,
                Item::Absent => Ok(false),
                Item::Came(fact) => {
                    let value = &self.facts[*fact as usize].value;
                    call_user(|| look(&context, value)).flatten()
                }
            };
            looked.next += 1;
            match answer {
                Ok(false) => {}
                Ok(true) => {
                    halted = Some(index(looked.next));
                    break;
                }
                Err(_) => {
                    looked.look = None;
                    break;
                }
            }
        }
        if halted.is_some() {
            self.looks.forget(node, list);
        }
        halted
    }
}
