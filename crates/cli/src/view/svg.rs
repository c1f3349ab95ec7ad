//! Bars over a time axis as a picture that needs nothing else: no script, no font, nothing from elsewhere.

use std::fmt::Write as _;

use tidewheel_core::time::Timestamp;
use tidewheel_core::view::{Doing, Stretch, between, long, steers};

use super::bars::{Bar, End, Period, is_work, seen, words};
use super::columns::cut;
use super::timeline::{Canvas, ticks};
use crate::output::harmless;

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sheet<'a> {
    pub(crate) title: &'a str,
    /// What is said under the title.
    pub(crate) under: &'a str,
    pub(crate) bars: &'a [Bar<'a>],
    pub(crate) period: Period,
}

/// Draws the picture.
pub(crate) fn draw(sheet: &Sheet<'_>) -> String {
    let bottom = TOP + ROW * sheet.bars.len().max(1);
    let legend = Legend::of(sheet.bars);
    let height = bottom + 38 + LEGEND_ROW * legend.rows;
    let title = xml(&cut(&harmless(sheet.title), 96, UNICODE));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-size=\"12\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n\
         <title>{title}</title>\n{STYLE}\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>\n\
         <text class=\"ink\" x=\"16\" y=\"28\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n\
         <text class=\"faint\" x=\"16\" y=\"48\">{}</text>\n",
        xml(&cut(&harmless(sheet.under), 126, UNICODE))
    );
    axis(&mut text, sheet.period, bottom);
    for (place, bar) in sheet.bars.iter().enumerate() {
        row(&mut text, bar, TOP + ROW * place, sheet.period);
    }
    if sheet.bars.is_empty() {
        let y = TOP + 16;
        let _ =
            writeln!(text, "<text class=\"faint\" x=\"{LEFT}\" y=\"{y}\">Nothing has happened yet.</text>");
    }
    legend.draw(&mut text, bottom + 24);
    text.push_str("</svg>\n");
    text
}

const WIDTH: usize = 960;
/// Where the bars begin and end.
const LEFT: usize = 236;
const RIGHT: usize = 820;
/// Where the first row begins.
const TOP: usize = 92;
const ROW: usize = 24;
/// A name has so many columns, and what stands behind a bar so many.
const NAME_COLUMNS: usize = 28;
const NOTE_COLUMNS: usize = 16;
/// One column of text is about seven units wide.
const AXIS_COLUMNS: usize = (RIGHT - LEFT) / 7;

const UNICODE: Canvas = Canvas { width: WIDTH, has_unicode: true };

/// The colours, for light grounds and for dark ones.
const STYLE: &str = "\
<style>
.paper { fill: #ffffff; stroke: #d0d7de; } .ink { fill: #1f2328; } .faint { fill: #59636e; }
.grid { stroke: #d8dee4; } .attempt { fill: #2da44e; } .running { fill: #218bff; } .failed { fill: #cf222e; }
.lost { fill: #9a6700; } .wait { fill: #afb8c1; } .hold { fill: #f0c75e; } .asked { fill: #a475f9; }
.backoff { fill: url(#tw-hatch); stroke: #afb8c1; } .hatch { stroke: #8c959f; }
.critical { fill: none; stroke: #bc4c00; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; stroke: #30363d; } .ink { fill: #e6edf3; } .faint { fill: #9198a1; }
.grid { stroke: #30363d; } .attempt { fill: #3fb950; } .running { fill: #58a6ff; } .failed { fill: #f85149; }
.wait { fill: #6e7681; } .backoff { stroke: #6e7681; } .hatch { stroke: #8b949e; } .critical { stroke: #ffa657; }
}
</style>
<defs><pattern id=\"tw-hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
<path class=\"hatch\" d=\"M0 6L6 0\"/></pattern></defs>
";

fn axis(text: &mut String, period: Period, bottom: usize) {
    let end_ms = (between(period.from, period.to) / 1_000_000).max(1);
    for (millis, label) in ticks(end_ms, AXIS_COLUMNS) {
        let at =
            Timestamp::from_nanos(period.from.as_nanos().saturating_add(millis.saturating_mul(1_000_000)));
        let x = shown(tenths(at, period));
        let (line, labels) = (TOP - 8, TOP - 14);
        let _ = writeln!(text, "<path class=\"grid\" d=\"M{x} {line}V{bottom}\"/>");
        let _ = writeln!(
            text,
            "<text class=\"faint\" x=\"{x}\" y=\"{labels}\" text-anchor=\"middle\">{label}</text>"
        );
    }
}

fn row(text: &mut String, bar: &Bar<'_>, top: usize, period: Period) {
    let base = top + 16;
    let weight = if bar.is_marked { " font-weight=\"bold\"" } else { "" };
    let name = xml(&cut(&harmless(&bar.name), NAME_COLUMNS, UNICODE));
    let _ = writeln!(text, "<text class=\"ink\" x=\"16\" y=\"{base}\"{weight}>{name}</text>");
    // What gets on best is drawn last, so that short attempts are seen.
    let mut stretches: Vec<&Stretch> = bar.stretches.iter().collect();
    stretches.sort_by_key(|stretch| std::cmp::Reverse(stretch.doing));
    let mut ends: Option<(usize, usize)> = None;
    for stretch in stretches {
        let (from, to) = (tenths(stretch.from, period), tenths(stretch.to.unwrap_or(period.to), period));
        let least = if is_work(stretch.doing) { 20 } else { 0 };
        let wide = to.saturating_sub(from).max(least);
        if wide == 0 {
            continue;
        }
        ends =
            Some(ends.map_or((from, from + wide), |(first, last)| (first.min(from), last.max(from + wide))));
        let (y, high) = if is_work(stretch.doing) { (top + 4, 16) } else { (top + 8, 8) };
        // What takes no time at all is told with a sign that means something here.
        let took = xml(&long(between(stretch.from, stretch.to.unwrap_or(period.to))));
        let _ = writeln!(
            text,
            "<rect class=\"{}\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{high}\"><title>{}: {took}</title></rect>",
            class(stretch),
            shown(from),
            shown(wide),
            words(stretch.doing)
        );
    }
    if let (true, Some((from, to))) = (bar.is_marked, ends) {
        let (x, y, wide) = (shown(from.saturating_sub(20)), top + 2, shown(to - from + 40));
        let _ = writeln!(
            text,
            "<rect class=\"critical\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"20\" rx=\"3\"/>"
        );
    }
    let x = RIGHT + 16;
    let mark = match bar.end {
        Some(End::Well) => "✓ ",
        Some(End::Badly) => "✗ ",
        Some(End::Neither) | None => "",
    };
    let note = xml(&cut(&harmless(&format!("{mark}{}", bar.note)), NOTE_COLUMNS, UNICODE));
    let _ = writeln!(text, "<text class=\"faint\" x=\"{x}\" y=\"{base}\">{note}</text>");
}

/// What the colours mean.
struct Legend {
    /// Where each entry stands, its class and what it means.
    entries: Vec<(usize, usize, &'static str, &'static str)>,
    rows: usize,
}

/// How far the lines of a legend are apart.
const LEGEND_ROW: usize = 18;

impl Legend {
    fn of(bars: &[Bar<'_>]) -> Self {
        let used = seen(bars);
        let stretches = || bars.iter().flat_map(|bar| bar.stretches);
        let is_running = stretches().any(|one| one.doing == Doing::Attempt && one.to.is_none());
        let is_done = stretches().any(|one| one.doing == Doing::Attempt && one.to.is_some());
        let mut words_of: Vec<(&'static str, &'static str)> = Vec::new();
        for doing in Doing::ALL.into_iter().filter(|doing| used.contains(doing)) {
            if doing == Doing::Attempt {
                words_of.extend(is_done.then_some(("attempt", "attempt")));
                words_of.extend(is_running.then_some(("running", "running")));
            } else {
                words_of.push((class_of(doing), words(doing)));
            }
        }
        words_of.extend(bars.iter().any(|bar| bar.is_marked).then_some(("critical", "critical path")));
        let (mut x, mut row) = (16, 0);
        let mut entries = Vec::with_capacity(words_of.len());
        for (class, said) in words_of {
            let wide = 36 + said.len() * 8;
            if x + wide > WIDTH {
                (x, row) = (16, row + 1);
            }
            entries.push((x, row, class, said));
            x += wide;
        }
        Self { rows: row + 1, entries }
    }

    fn draw(&self, text: &mut String, y: usize) {
        for (x, row, class, said) in &self.entries {
            let (top, base, after) = (y + row * LEGEND_ROW - 9, y + row * LEGEND_ROW + 1, x + 18);
            let _ = writeln!(
                text,
                "<rect class=\"{class}\" x=\"{x}\" y=\"{top}\" width=\"12\" height=\"10\"/>\
                 <text class=\"faint\" x=\"{after}\" y=\"{base}\">{said}</text>"
            );
        }
    }
}

const fn class(stretch: &Stretch) -> &'static str {
    match (stretch.doing, stretch.to) {
        (Doing::Attempt, None) => "running",
        (doing, _) => class_of(doing),
    }
}

const fn class_of(doing: Doing) -> &'static str {
    match doing {
        Doing::Attempt => "attempt",
        Doing::Failed => "failed",
        Doing::Lost => "lost",
        Doing::Queue | Doing::World => "wait",
        Doing::Locks | Doing::Capacity | Doing::Waiting => "hold",
        Doing::Backoff => "backoff",
        Doing::Approval => "asked",
    }
}

/// Returns where an instant stands, in tenths of a unit.
fn tenths(at: Timestamp, period: Period) -> usize {
    let total = u128::from(between(period.from, period.to)).max(1_000_000);
    let room = u128::try_from((RIGHT - LEFT) * 10).unwrap_or(u128::MAX);
    let far = u128::from(between(period.from, at)).min(total) * room / total;
    LEFT * 10 + usize::try_from(far).unwrap_or(0)
}

fn shown(tenths: usize) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Writes a text so that it stays a text: what XML means something by, and what it does not allow at all.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            steering if steers(steering) => escaped.push(char::REPLACEMENT_CHARACTER),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};

    /// Reads XML, as far as we write it: tags are closed in order, and every text and value is escaped.
    fn check(xml: &str) -> Vec<String> {
        let (mut open, mut texts): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
        let mut rest = xml;
        while let Some(at) = rest.find('<') {
            let text = &rest[..at];
            let is_style = open.last() == Some(&"style");
            assert!(is_style || !text.contains(['>', '"', '\'']), "{text}");
            texts.push(read(text));
            let end = rest.find('>').unwrap_or_else(|| panic!("a tag is not closed: {rest}"));
            let tag = &rest[at + 1..end];
            rest = &rest[end + 1..];
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "{xml}");
                continue;
            }
            let (tag, is_whole) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
            let name = tag.split(' ').next().unwrap_or_default();
            let mut values = tag[name.len()..].split('"');
            while let (Some(key), Some(value)) = (values.next(), values.next()) {
                assert!(key.starts_with(' ') && key.ends_with('='), "{tag}");
                assert!(!value.contains('<'), "{tag}");
                read(value);
            }
            if !is_whole {
                open.push(name);
            }
        }
        assert_eq!((open.len(), rest), (0, "\n"), "{xml}");
        assert!(!xml.contains(|c: char| c.is_control() && c != '\n'), "{xml}");
        texts
    }

    /// Returns a text as it is read.
    fn read(text: &str) -> String {
        let mut parts = text.split('&');
        let mut read = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, after) = part.split_once(';').unwrap_or_else(|| panic!("no escape: &{part}"));
            read.push_str(match name {
                "amp" => "&",
                "lt" => "<",
                "gt" => ">",
                "quot" => "\"",
                "#39" => "'",
                other => panic!("no such escape: {other}"),
            });
            read.push_str(after);
        }
        read
    }

    fn stretch(doing: Doing, from: u64, to: Option<u64>) -> Stretch {
        let at = Timestamp::from_millis;
        Stretch { doing, hold: None, from: at(from), to: to.map(at) }
    }

    const PERIOD: Period = Period { from: Timestamp::from_millis(0), to: Timestamp::from_millis(4_000) };

    #[test]
    fn a_picture_has_its_bars_its_axis_and_its_legend() {
        let (first, second) = (
            [
                stretch(Doing::Failed, 0, Some(1_000)),
                stretch(Doing::Backoff, 1_000, Some(2_000)),
                stretch(Doing::Attempt, 2_000, Some(3_000)),
            ],
            [stretch(Doing::Approval, 3_000, Some(3_500)), stretch(Doing::Attempt, 3_500, None)],
        );
        let bar = |name: &str, stretches, end, note: &str| Bar {
            name: name.to_owned(),
            stretches,
            end,
            is_marked: end.is_some(),
            note: note.to_owned(),
        };
        let bars =
            [bar("fetch", &first[..], Some(End::Well), "3s"), bar("sign", &second[..], None, "1s running")];
        let drawn =
            draw(&Sheet {
                title: "template.ship@v1", under: "run_7 · running", bars: &bars, period: PERIOD
            });
        check(&drawn);
        let body = drawn.split("</defs>\n").nth(1).unwrap_or_default();
        insta::assert_snapshot!(body, @r#"
        <rect class="paper" width="960" height="196" rx="6"/>
        <text class="ink" x="16" y="28" font-size="15" font-weight="bold">template.ship@v1</text>
        <text class="faint" x="16" y="48">run_7 · running</text>
        <path class="grid" d="M236.0 84V140"/>
        <text class="faint" x="236.0" y="78" text-anchor="middle">0s</text>
        <path class="grid" d="M309.0 84V140"/>
        <text class="faint" x="309.0" y="78" text-anchor="middle">0.5s</text>
        <path class="grid" d="M382.0 84V140"/>
        <text class="faint" x="382.0" y="78" text-anchor="middle">1s</text>
        <path class="grid" d="M455.0 84V140"/>
        <text class="faint" x="455.0" y="78" text-anchor="middle">1.5s</text>
        <path class="grid" d="M528.0 84V140"/>
        <text class="faint" x="528.0" y="78" text-anchor="middle">2s</text>
        <path class="grid" d="M601.0 84V140"/>
        <text class="faint" x="601.0" y="78" text-anchor="middle">2.5s</text>
        <path class="grid" d="M674.0 84V140"/>
        <text class="faint" x="674.0" y="78" text-anchor="middle">3s</text>
        <path class="grid" d="M747.0 84V140"/>
        <text class="faint" x="747.0" y="78" text-anchor="middle">3.5s</text>
        <path class="grid" d="M820.0 84V140"/>
        <text class="faint" x="820.0" y="78" text-anchor="middle">4s</text>
        <text class="ink" x="16" y="108" font-weight="bold">fetch</text>
        <rect class="backoff" x="382.0" y="100" width="146.0" height="8"><title>backoff: 1s</title></rect>
        <rect class="failed" x="236.0" y="96" width="146.0" height="16"><title>failed attempt: 1s</title></rect>
        <rect class="attempt" x="528.0" y="96" width="146.0" height="16"><title>attempt: 1s</title></rect>
        <rect class="critical" x="234.0" y="94" width="442.0" height="20" rx="3"/>
        <text class="faint" x="836" y="108">✓ 3s</text>
        <text class="ink" x="16" y="132">sign</text>
        <rect class="asked" x="674.0" y="124" width="73.0" height="8"><title>approval: 500ms</title></rect>
        <rect class="running" x="747.0" y="120" width="73.0" height="16"><title>attempt: 500ms</title></rect>
        <text class="faint" x="836" y="132">1s running</text>
        <rect class="attempt" x="16" y="155" width="12" height="10"/><text class="faint" x="34" y="165">attempt</text>
        <rect class="running" x="108" y="155" width="12" height="10"/><text class="faint" x="126" y="165">running</text>
        <rect class="failed" x="200" y="155" width="12" height="10"/><text class="faint" x="218" y="165">failed attempt</text>
        <rect class="backoff" x="348" y="155" width="12" height="10"/><text class="faint" x="366" y="165">backoff</text>
        <rect class="asked" x="440" y="155" width="12" height="10"/><text class="faint" x="458" y="165">approval</text>
        <rect class="critical" x="540" y="155" width="12" height="10"/><text class="faint" x="558" y="165">critical path</text>
        </svg>
        "#);
    }

    #[test]
    fn no_name_leaves_its_place() {
        let names = [
            "</text><script>alert(1)</script>",
            "\" onload=\"x",
            "a & b &lt; 'c'",
            "]]>",
            "<!--",
            "\u{1b}[31m\u{0}\u{fffe}",
            "订单 🦀",
            "\u{202e}gnp",
            "",
        ];
        for name in names {
            let stretches = [stretch(Doing::Attempt, 0, Some(1))];
            let bars = [Bar {
                name: name.to_owned(),
                stretches: &stretches,
                end: Some(End::Badly),
                is_marked: true,
                note: name.to_owned(),
            }];
            let drawn = draw(&Sheet { title: name, under: name, bars: &bars, period: PERIOD });
            let texts = check(&drawn);
            let seen = cut(&harmless(name).replace('\u{fffe}', "\u{fffd}"), NAME_COLUMNS, UNICODE);
            assert!(texts.contains(&seen), "{seen:?} in {texts:?}");
            assert!(!drawn.contains("<script") && !drawn.contains('\u{202e}'), "{drawn}");
        }
    }

    #[test]
    fn foreign_text_breaks_no_picture() {
        let mut foreign = Foreign::new("pictures");
        for _ in 0..foreign::count() / 4 {
            let texts: [String; 4] = std::array::from_fn(|_| foreign.text());
            let [title, under, name, note] = &texts;
            let stretches = [stretch(Doing::Attempt, 0, Some(1_000)), stretch(Doing::Backoff, 1_000, None)];
            let bars = [Bar {
                name: name.clone(),
                stretches: &stretches,
                end: Some(End::Badly),
                is_marked: true,
                note: note.clone(),
            }];
            let drawn = draw(&Sheet { title, under, bars: &bars, period: PERIOD });
            let lines = Some(drawn.lines().count());
            check(&drawn);
            Shown { text: &drawn, lines, ..Shown::default() }.check(&texts);
            assert_eq!(drawn.matches("<text class=\"ink\"").count(), 2, "{drawn}");
        }
    }

    #[test]
    fn a_run_of_no_time_and_no_jobs_is_a_picture_all_the_same() {
        let period = Period { from: PERIOD.from, to: PERIOD.from };
        let drawn = draw(&Sheet { title: "t", under: "u", bars: &[], period });
        assert!(check(&drawn).iter().any(|text| text == "Nothing has happened yet."));
        let stretches = [stretch(Doing::Attempt, 0, Some(0))];
        let bars = [Bar {
            name: "a".to_owned(),
            stretches: &stretches,
            end: None,
            is_marked: true,
            note: String::new(),
        }];
        check(&draw(&Sheet { title: "t", under: "u", bars: &bars, period }));
    }

    #[test]
    fn what_took_less_than_can_be_told_says_so_and_breaks_nothing() {
        let stretches = [Stretch { to: Some(Timestamp::from_nanos(7)), ..stretch(Doing::Attempt, 0, None) }];
        let bars = [Bar {
            name: "a".to_owned(),
            stretches: &stretches,
            end: None,
            is_marked: false,
            note: String::new(),
        }];
        let drawn = draw(&Sheet { title: "t", under: "u", bars: &bars, period: PERIOD });
        assert!(check(&drawn).iter().any(|text| text == "attempt: <1ms"), "{drawn}");
    }

    #[test]
    fn nothing_stands_outside_of_the_picture() {
        let stretches: Vec<Stretch> =
            Doing::ALL.iter().map(|doing| stretch(*doing, 0, Some(9_000))).collect();
        let bars = [Bar {
            name: "n".repeat(99),
            stretches: &stretches,
            end: Some(End::Well),
            is_marked: true,
            note: "m".repeat(99),
        }];
        let drawn =
            draw(&Sheet { title: &"t".repeat(300), under: &"u".repeat(300), bars: &bars, period: PERIOD });
        for part in drawn.split(" x=\"").skip(1) {
            let (x, _) = part.split_once('"').unwrap_or_default();
            assert!(x.parse::<f64>().is_ok_and(|x| (0.0..960.0).contains(&x)), "{x}");
        }
    }
}
