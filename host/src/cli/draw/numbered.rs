//! Numbered points of a picture, and a list on the right that explains the numbers.

use plotters::{
    prelude::{DrawingBackend, RGBColor},
    style::text_anchor::{HPos, VPos},
};

use super::{
    axis::APART,
    pen::{INK, LEFT, Pen, RIGHT, SMALL, width_of},
};

/// A point: its number, its name in the list, its position, and its colour.
pub(in crate::cli) struct Numbered {
    pub(in crate::cli) number: usize,
    pub(in crate::cli) words: String,
    pub(in crate::cli) at: (i32, i32),
    pub(in crate::cli) color: RGBColor,
}

impl Numbered {
    fn row(&self) -> String {
        format!("{}  {}", self.number, self.words)
    }
}

/// The width of the list for points with these numbers and names.
pub(in crate::cli) fn list_width<'a>(points: impl Iterator<Item = (usize, &'a str)>) -> i32 {
    let rows = points.map(|(number, words)| width_of(&format!("{number}  {words}"), SMALL));
    rows.max().unwrap_or(100)
}

/// Draws the points with their numbers, and the list from `top` down.
pub(in crate::cli) fn draw<B: DrawingBackend>(
    pen: &Pen<B>,
    points: &[Numbered],
    list: (i32, i32),
) -> Result<(), String> {
    for point in points {
        pen.dot(point.at, 5, point.color)?;
    }
    for (words, (at, anchor)) in labels(points) {
        pen.words(&words, at, anchor, SMALL, INK)?;
    }
    let mut rows = points.iter().collect::<Vec<_>>();
    rows.sort_by_key(|point| point.number);
    for (place, point) in (0..).zip(rows) {
        pen.words(&point.row(), (list.0, list.1 + APART * place), LEFT, SMALL, INK)?;
    }
    Ok(())
}

/// The position of a text, and its anchor.
type Place = ((i32, i32), (HPos, VPos));

/// The numbers and their positions: next to the point, and over no other point or number if there
/// is room.
fn labels(points: &[Numbered]) -> Vec<(String, Place)> {
    let mut placed = Vec::<(String, Place)>::new();
    for group in groups(points) {
        let words = ranges(group.iter().map(|&point| points[point].number).collect());
        let (x, y) = points[group[0]].at;
        let around = [(8, -9), (-8, -9), (8, 11), (-8, 11), (8, -25), (8, 27), (-8, -25), (-8, 27)];
        let places = around.map(|(right, down)| -> Place {
            ((x + right, y + down), if right > 0 { LEFT } else { RIGHT })
        });
        let is_free = |place: &&Place| {
            let own = area(&words, **place);
            let others = (0..points.len()).filter(|point| !group.contains(point));
            let mut dots =
                others.map(|point| points[point].at).map(|(x, y)| [x - 5, y - 5, x + 5, y + 5]);
            !dots.any(|dot| overlap(own, dot))
                && !placed.iter().any(|(words, place)| overlap(own, area(words, *place)))
        };
        let place = *places.iter().find(is_free).unwrap_or(&places[0]);
        placed.push((words, place));
    }
    placed
}

/// The left, top, right and bottom of a text.
fn area(words: &str, ((x, y), (side, _)): Place) -> [i32; 4] {
    let width = width_of(words, SMALL);
    let left = if matches!(side, HPos::Right) { x - width } else { x };
    [left, y - SMALL / 2, left + width, y + SMALL / 2]
}

fn overlap([left, top, right, bottom]: [i32; 4], other: [i32; 4]) -> bool {
    left < other[2] && other[0] < right && top < other[3] && other[1] < bottom
}

/// Groups of points so close that their numbers would overlap. They share a position. The first
/// point is the rightmost and uppermost.
fn groups(points: &[Numbered]) -> Vec<Vec<usize>> {
    const NEAR: (i32, i32) = (30, 16);
    let mut order = (0..points.len()).collect::<Vec<_>>();
    order.sort_by_key(|&point| (points[point].at.1, -points[point].at.0));
    let mut groups = Vec::<Vec<usize>>::new();
    for point in order {
        let near = |&other: &usize| {
            let (one, other) = (points[point].at, points[other].at);
            (one.0 - other.0).abs() < NEAR.0 && (one.1 - other.1).abs() < NEAR.1
        };
        match groups.iter_mut().find(|group| group.iter().any(near)) {
            Some(group) => group.push(point),
            None => groups.push(vec![point]),
        }
    }
    groups
}

/// `1, 3-5, 8`.
fn ranges(mut numbers: Vec<usize>) -> String {
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let words = runs.map(|run| match run {
        [one] => one.to_string(),
        [one, two] => format!("{one}, {two}"),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(at: &[(i32, i32)]) -> Vec<Numbered> {
        let point = |(number, &at)| Numbered { number, words: String::new(), at, color: INK };
        (1..).zip(at).map(point).collect()
    }

    #[test]
    fn points_near_each_other_share_their_numbers_place() {
        let points = points(&[(100, 100), (300, 100), (110, 104), (100, 140), (120, 112)]);
        let found = groups(&points)
            .into_iter()
            .map(|group| ranges(group.into_iter().map(|point| points[point].number).collect()));
        assert_eq!(found.collect::<Vec<_>>(), ["2", "1, 3, 5", "4"]);
        assert_eq!(ranges(vec![8, 1, 3, 4, 5]), "1, 3-5, 8");
        assert_eq!(ranges(vec![2, 1]), "1, 2");
    }

    #[test]
    fn numbers_stand_over_no_other_number() {
        // Pairs, and a point where the first pair's numbers would end.
        let points =
            points(&[(500, 100), (500, 110), (540, 96), (540, 108), (400, 100), (410, 130)]);
        let labels = labels(&points);
        let areas = labels.iter().map(|(words, place)| area(words, *place)).collect::<Vec<_>>();
        for (number, one) in areas.iter().enumerate() {
            assert!(!areas[..number].iter().any(|other| overlap(*one, *other)), "{areas:?}");
        }
        assert_eq!(labels.len(), 4);
    }
}
