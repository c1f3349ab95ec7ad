//! Lines over sizes as a picture that needs nothing else: no script, no font, nothing from elsewhere. Both scales are
//! logarithmic, so that a cost per item that does not grow is a flat line.

use std::fmt::Write as _;

use super::quantity::{Unit, round, shown, thousands};

/// What is drawn.
pub(crate) struct Sheet<'a> {
    pub(crate) title: &'a str,
    /// What a size counts.
    pub(crate) of: &'a str,
    /// What is drawn upwards.
    pub(crate) cost: &'a str,
    pub(crate) unit: Unit,
    pub(crate) lines: Vec<Line<'a>>,
}

/// One line.
pub(crate) struct Line<'a> {
    pub(crate) label: &'a str,
    /// Sizes and values; what is not above zero has no place on such a scale and is left out.
    pub(crate) points: Vec<(u64, f64)>,
}

/// Draws the picture.
pub(crate) fn draw(sheet: &Sheet<'_>) -> String {
    let legend = legend(&sheet.lines);
    let rows = legend.last().map_or(0, |(_, row, ..)| row + 1);
    let height = BOTTOM + 62 + 20 * rows;
    let title = xml(sheet.title);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-size=\"12\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n\
         <title>{title}</title>\n{STYLE}\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>\n\
         <text class=\"ink\" x=\"16\" y=\"28\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n\
         <text class=\"faint\" x=\"16\" y=\"48\">{}, by the number of {}; both scales are logarithmic</text>\n",
        xml(sheet.cost),
        xml(sheet.of),
    );
    match Field::of(&sheet.lines) {
        None => {
            let y = (TOP + BOTTOM) / 2;
            let _ =
                writeln!(text, "<text class=\"faint\" x=\"{LEFT}\" y=\"{y}\">Nothing was measured.</text>");
        }
        Some(field) => {
            axes(&mut text, sheet, &field);
            for (index, line) in sheet.lines.iter().enumerate() {
                curve(&mut text, line, index, sheet.unit, &field);
            }
        }
    }
    for (x, row, index, label) in legend {
        let y = BOTTOM + 56 + 20 * row;
        mark(&mut text, index, x as f64 + 6.0, y as f64 - 4.0, None);
        let _ = writeln!(text, "<text class=\"faint\" x=\"{}\" y=\"{y}\">{}</text>", x + 18, xml(&label));
    }
    text.push_str("</svg>\n");
    text
}

const WIDTH: usize = 760;
const LEFT: usize = 100;
const RIGHT: usize = 708;
const TOP: usize = 68;
const BOTTOM: usize = 340;
/// So many kinds of lines can be told apart; a seventh looks like the first.
const KINDS: usize = 6;
/// Labels that are closer than this would touch.
const APART: f64 = 46.0;

/// The colours, for light grounds and for dark ones; each line has a mark of its own besides.
const STYLE: &str = "\
<style>
.paper { fill: #ffffff; stroke: #d0d7de; } .ink { fill: #1f2328; } .faint { fill: #59636e; }
.grid { stroke: #d8dee4; } .line { fill: none; stroke-width: 2; }
.a { stroke: #0969da; } .b { stroke: #1a7f37; } .c { stroke: #bc4c00; }
.d { stroke: #8250df; } .e { stroke: #cf222e; } .f { stroke: #59636e; }
.mark { fill: #ffffff; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; stroke: #30363d; } .ink { fill: #e6edf3; } .faint { fill: #9198a1; }
.grid { stroke: #30363d; } .mark { fill: #0d1117; }
.a { stroke: #58a6ff; } .b { stroke: #3fb950; } .c { stroke: #ffa657; }
.d { stroke: #d2a8ff; } .e { stroke: #ff7b72; } .f { stroke: #9198a1; }
}
</style>
";

/// The ranges of both scales, as logarithms.
struct Field {
    sizes: (f64, f64),
    values: (f64, f64),
}

impl Field {
    fn of(lines: &[Line<'_>]) -> Option<Self> {
        let points = || lines.iter().flat_map(Line::drawn);
        let range = |of: &dyn Fn((u64, f64)) -> f64| {
            let (low, high) =
                points().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                    (low.min(value), high.max(value))
                });
            (low <= high).then_some((low.log10(), high.log10()))
        };
        let (first, last) = range(&|(size, _)| size as f64)?;
        let (low, high) = range(&|(_, value)| value)?;
        // At least a decade and a half, or small differences would look large.
        let short = ((1.5 - (high - low)) / 2.0).max(0.1);
        let wide = if last - first < 0.3 { 0.3 } else { 0.0 };
        Some(Self { sizes: (first - wide, last + wide), values: (low - short, high + short) })
    }

    fn x(&self, size: u64) -> f64 {
        let (first, last) = self.sizes;
        LEFT as f64 + ((size as f64).log10() - first) / (last - first) * (RIGHT - LEFT) as f64
    }

    fn y(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        BOTTOM as f64 - (value.log10() - low) / (high - low) * (BOTTOM - TOP) as f64
    }

    /// Returns round values: decades, with steps of 1, 2 and 5 if there are few.
    fn ticks(&self) -> Vec<f64> {
        let (low, high) = self.values;
        let steps: &[f64] = if high - low > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let mut ticks = Vec::new();
        let mut decade = low.floor();
        while decade <= high {
            ticks.extend(steps.iter().map(|step| step * 10_f64.powf(decade)));
            decade += 1.0;
        }
        ticks.retain(|tick| (low..=high).contains(&tick.log10()));
        ticks
    }
}

impl Line<'_> {
    fn drawn(&self) -> impl Iterator<Item = (u64, f64)> {
        self.points.iter().copied().filter(|(size, value)| *size > 0 && *value > 0.0 && value.is_finite())
    }
}

fn axes(text: &mut String, sheet: &Sheet<'_>, field: &Field) {
    for tick in field.ticks() {
        let y = field.y(tick);
        let (end, base) = (LEFT - 8, y + 4.0);
        let _ = writeln!(text, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>");
        let _ = writeln!(
            text,
            "<text class=\"faint\" x=\"{end}\" y=\"{base:.1}\" text-anchor=\"end\">{}</text>",
            round(tick, sheet.unit)
        );
    }
    let mut sizes: Vec<u64> = sheet.lines.iter().flat_map(Line::drawn).map(|(size, _)| size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut last = f64::NEG_INFINITY;
    for size in sizes {
        let x = field.x(size);
        let (end, base) = (BOTTOM + 4, BOTTOM + 20);
        if x - last < APART {
            continue;
        }
        last = x;
        let _ = writeln!(text, "<path class=\"grid\" d=\"M{x:.1} {TOP}V{end}\"/>");
        let _ = writeln!(
            text,
            "<text class=\"faint\" x=\"{x:.1}\" y=\"{base}\" text-anchor=\"middle\">{}</text>",
            thousands(size)
        );
    }
}

fn curve(text: &mut String, line: &Line<'_>, index: usize, unit: Unit, field: &Field) {
    let places: Vec<(f64, f64)> = line.drawn().map(|(size, value)| (field.x(size), field.y(value))).collect();
    if places.len() > 1 {
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let _ = writeln!(text, "<path class=\"line {}\" d=\"M{}\"/>", class(index), path.join("L"));
    }
    for ((x, y), (size, value)) in places.into_iter().zip(line.drawn()) {
        let title = format!("{}, {}: {}", line.label, thousands(size), shown(value, unit));
        mark(text, index, x, y, Some(&title));
    }
}

/// Draws a point; each line has a shape of its own, for those who do not see its colour.
fn mark(text: &mut String, index: usize, x: f64, y: f64, title: Option<&str>) {
    let path = match index % KINDS {
        0 => format!("M{:.1} {:.1}h8v8h-8z", x - 4.0, y - 4.0),
        1 => format!("M{:.1} {:.1}l5 9h-10z", x, y - 6.0),
        2 => format!("M{:.1} {:.1}l5 5l-5 5l-5 -5z", x, y - 5.0),
        3 => format!("M{:.1} {:.1}l5 -9h-10z", x, y + 6.0),
        4 => format!("M{:.1} {:.1}l8 8m0 -8l-8 8", x - 4.0, y - 4.0),
        _ => format!("M{:.1} {:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4.0, y),
    };
    let title = title.map(|title| format!("<title>{}</title>", xml(title))).unwrap_or_default();
    let _ = writeln!(text, "<path class=\"mark {}\" d=\"{path}\">{title}</path>", class(index));
}

const fn class(index: usize) -> &'static str {
    ["a", "b", "c", "d", "e", "f"][index % KINDS]
}

/// Returns where each line is named: the column, the row, which one it is, and its name.
fn legend(lines: &[Line<'_>]) -> Vec<(usize, usize, usize, String)> {
    let (mut x, mut row) = (16, 0);
    let mut entries = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        let is_there = line.drawn().next().is_some();
        let label = format!("{}{}", line.label, if is_there { "" } else { " (not measured)" });
        let wide = 40 + label.chars().count() * 8;
        if x + wide > WIDTH && x > 16 {
            (x, row) = (16, row + 1);
        }
        entries.push((x, row, index, label));
        x += wide;
    }
    entries
}

/// Writes a text so that it stays a text.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            steering if steering.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Reads XML, as far as we write it: tags are closed in order, and every text and value is escaped.
    pub(crate) fn check(xml: &str) -> Vec<String> {
        let (mut open, mut texts): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
        let mut rest = xml;
        while let Some(at) = rest.find('<') {
            let text = &rest[..at];
            assert!(open.last() == Some(&"style") || !text.contains(['>', '"', '\'']), "{text}");
            texts.push(text.to_owned());
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
                assert!(key.starts_with(' ') && key.ends_with('=') && !value.contains('<'), "{tag}");
            }
            if !is_whole {
                open.push(name);
            }
        }
        assert_eq!((open.len(), rest), (0, "\n"), "{xml}");
        assert!(!xml.contains("NaN") && !xml.contains("inf"), "{xml}");
        texts
    }

    fn sheet(lines: Vec<Line<'_>>) -> Sheet<'_> {
        Sheet { title: "A chain runs", of: "items", cost: "time per item", unit: Unit::Nanos, lines }
    }

    /// Returns the numbers that follow an attribute.
    fn places(drawn: &str, key: &str) -> Vec<f64> {
        let parts = drawn.split(key).skip(1);
        parts
            .map(|part| part.split(['"', ' ', 'L', 'h', 'l', 'a', 'H', 'V']).next().unwrap().parse().unwrap())
            .collect()
    }

    #[test]
    fn a_cost_that_does_not_grow_is_a_flat_line() {
        let points = vec![(1_000, 250.0), (10_000, 250.0), (100_000, 250.0)];
        let drawn = draw(&sheet(vec![Line { label: "chain", points }]));
        let texts = check(&drawn);
        assert!(
            drawn.contains(r#"<path class="line a" d="M100.0 204.0L404.0 204.0L708.0 204.0"/>"#),
            "{drawn}"
        );
        for seen in ["A chain runs", "1,000", "100,000", "chain, 10,000: 250 ns", "1 µs", "100 ns", "chain"]
        {
            assert!(texts.iter().any(|text| text == seen), "{seen} in {texts:?}");
        }
    }

    #[test]
    fn a_line_that_grows_rises() {
        let points = vec![(1_000, 100.0), (10_000, 1_000.0)];
        let drawn = draw(&sheet(vec![Line { label: "square", points }]));
        check(&drawn);
        let line = drawn.split("class=\"line a\" d=\"M").nth(1).unwrap();
        let (path, _) = line.split_once('"').unwrap();
        let ys: Vec<f64> = path.split('L').map(|at| at.split(' ').nth(1).unwrap().parse().unwrap()).collect();
        assert!(ys[0] > ys[1] + 100.0, "{ys:?}");
    }

    #[test]
    fn nothing_stands_outside_of_the_picture() {
        let label = "a rather long name of a line";
        let line = |scale: f64| Line { label, points: vec![(1, scale), (7, 1e9 * scale), (1_000_000, 3.0)] };
        let drawn = draw(&sheet((1_i32..=6).map(|power| line(10_f64.powi(power))).collect()));
        check(&drawn);
        for x in places(&drawn, " x=\"").into_iter().chain(places(&drawn, "d=\"M")) {
            assert!((0.0..760.0).contains(&x), "{x}");
        }
        let height = places(&drawn, "\" height=\"")[0];
        assert!(places(&drawn, " y=\"").into_iter().all(|y| y > 0.0 && y < height), "{drawn}");
    }

    #[test]
    fn one_point_is_a_mark_and_none_is_said() {
        let drawn = draw(&sheet(vec![
            Line { label: "a", points: vec![(50, 2.0)] },
            Line { label: "b", points: vec![] },
        ]));
        let texts = check(&drawn);
        assert!(texts.iter().any(|text| text == "b (not measured)"));
        assert!(!drawn.contains("class=\"line"));
        let nothing =
            draw(&sheet(vec![Line { label: "a", points: vec![(0, 1.0), (1, 0.0), (2, f64::NAN)] }]));
        assert!(check(&nothing).iter().any(|text| text == "Nothing was measured."));
    }

    #[test]
    fn no_name_leaves_its_place() {
        let name = "</text><script>\" & '\u{1b}";
        let mut sheet = sheet(vec![Line { label: name, points: vec![(1, 1.0)] }]);
        (sheet.title, sheet.of, sheet.cost) = (name, name, name);
        check(&draw(&sheet));
    }
}
