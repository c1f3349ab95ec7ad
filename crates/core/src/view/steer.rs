//! Which characters nobody may print who does not know where they come from. Whoever prints says what stands there
//! instead.

/// Tells whether a character steers a terminal, the direction or the lines of a text, or is there without being seen.
///
/// What joins signs and chooses between their forms is seen by what it does, and stays.
#[must_use]
pub const fn steers(character: char) -> bool {
    let steers_terminal = matches!(character, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}');
    let steers_text = matches!(
        character,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let is_unseen = matches!(
        character,
        '\u{00ad}'
            | '\u{034f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    steers_terminal || steers_text || is_unseen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_character_steers() {
        assert!(('\0'..=char::MAX).filter(|character| character.is_control()).all(steers));
    }

    #[test]
    fn what_people_write_does_not() {
        let written =
            "Grüße, 订单, प्रोजेक्\u{200d}ट, می\u{200c}خواهم, ❤\u{fe0f}, 👩\u{200d}🚀, e\u{301}, \u{fffd}";
        assert!(!written.chars().any(steers));
    }
}
