//! One line that changes while somebody waits, on a terminal; elsewhere there is nothing.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::jobs::Tty;
use crate::output::harmless;
use crate::terminal;
use crate::view::columns::cut;

/// The line.
pub(crate) struct Live(Option<ProgressBar>);

impl Live {
    /// Begins the line, where lines can change.
    pub(crate) fn begin(is_wanted: bool) -> Self {
        let bar = (is_wanted && terminal::is_live()).then(|| {
            let target = ProgressDrawTarget::term_like(Box::new(Tty::default()));
            let style = ProgressStyle::with_template("{spinner} {wide_msg}")
                .expect("invariant: the template of the line is in order");
            let spins = if terminal::has_unicode() { "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ " } else { r"-\|/ " };
            ProgressBar::with_draw_target(None, target).with_style(style.tick_chars(spins))
        });
        Self(bar)
    }

    /// Says what goes on.
    pub(crate) fn say(&self, what: &str) {
        if let Some(bar) = &self.0 {
            let canvas = terminal::canvas();
            bar.set_message(cut(&harmless(what), canvas.width.saturating_sub(2), canvas));
            bar.tick();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
