//! Draws lines, boxes and words, the same for SVG and PNG.

use std::sync::Once;

use plotters::{
    coord::Shift,
    prelude::*,
    style::{
        FontTransform, register_font,
        text_anchor::{HPos, Pos, VPos},
    },
};

use crate::cli::{Failure, args::Format};

// A background of its own: the picture looks the same on a light and on a dark page.
pub(in crate::cli) const PAPER: RGBColor = RGBColor(252, 252, 250);
pub(in crate::cli) const INK: RGBColor = RGBColor(32, 36, 44);
pub(in crate::cli) const GREY: RGBColor = RGBColor(104, 110, 120);
pub(in crate::cli) const FAINT: RGBColor = RGBColor(218, 220, 224);
pub(in crate::cli) const THREAD: RGBColor = RGBColor(160, 172, 190);
pub(in crate::cli) const BLUE: RGBColor = RGBColor(38, 98, 168);
pub(in crate::cli) const ORANGE: RGBColor = RGBColor(204, 92, 28);

/// Font sizes in pixels.
pub(in crate::cli) const TITLE: i32 = 26;
pub(in crate::cli) const TEXT: i32 = 17;
pub(in crate::cli) const SMALL: i32 = 15;

/// The anchors of a text.
pub(in crate::cli) const LEFT: (HPos, VPos) = (HPos::Left, VPos::Center);
pub(in crate::cli) const RIGHT: (HPos, VPos) = (HPos::Right, VPos::Center);
pub(in crate::cli) const MIDDLE: (HPos, VPos) = (HPos::Center, VPos::Center);

/// The font's name. Viewers of an SVG use their own. A PNG uses the font file.
const FONT: &str = "sans-serif";
const FONT_FILE: &[u8] = include_bytes!("../../../fonts/DejaVuSans-subset.ttf");

/// Pixels of a PNG for each pixel of an SVG, so that it is sharp on dense screens.
const PNG_SCALE: i32 = 2;

/// The end of an SVG's first tag, with a style for dark pages: light becomes dark, and colours keep
/// their hue.
const DARK: &str = ">\n<style>@media (prefers-color-scheme: dark) { svg { filter: invert(0.92) hue-rotate(180deg) } }</style>\n";

/// An area to draw on. The origin is its upper left corner.
pub(in crate::cli) struct Pen<'a, B: DrawingBackend> {
    area: &'a DrawingArea<B, Shift>,
    scale: i32,
}

/// A picture, for either format.
pub(in crate::cli) trait Drawing {
    /// Its width and height.
    fn size(&self) -> (i32, i32);

    fn draw<B: DrawingBackend>(&self, pen: &Pen<B>) -> Result<(), String>;
}

/// The file's bytes.
pub(in crate::cli) fn render(drawing: &impl Drawing, format: Format) -> Result<Vec<u8>, Failure> {
    static REGISTERED: Once = Once::new();
    // If the font cannot be read, drawing fails, and that error is returned.
    REGISTERED.call_once(|| drop(register_font(FONT, FontStyle::Normal, FONT_FILE)));
    let (width, height) = drawing.size();
    let bytes = match format {
        Format::Svg => {
            let mut text = String::new();
            {
                let size = (width as u32, height as u32);
                let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
                on(&area, drawing, 1).map(|()| drop(area))
            }
            .map(|()| text.replacen(">\n", DARK, 1).into_bytes())
        }
        Format::Png => {
            let (width, height) = ((PNG_SCALE * width) as u32, (PNG_SCALE * height) as u32);
            let mut pixels = vec![0; 3 * width as usize * height as usize];
            {
                let area = BitMapBackend::with_buffer(&mut pixels, (width, height));
                let area = area.into_drawing_area();
                on(&area, drawing, PNG_SCALE).map(|()| drop(area))
            }
            .and_then(|()| png(&pixels, width, height))
        }
    };
    bytes.map_err(|reason| {
        let limit = format!("cannot be drawn: {reason}");
        host::Error::argument("the picture", format!("{width} x {height}"), limit).into()
    })
}

fn on<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    drawing: &impl Drawing,
    scale: i32,
) -> Result<(), String> {
    area.fill(&PAPER).map_err(text)?;
    drawing.draw(&Pen { area, scale })?;
    area.present().map_err(text)
}

/// Encodes opaque RGB pixels.
fn png(pixels: &[u8], width: u32, height: u32) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(text)?;
    writer.write_image_data(pixels).map_err(text)?;
    writer.finish().map_err(text)?;
    Ok(bytes)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

impl<B: DrawingBackend> Pen<'_, B> {
    fn at(&self, (x, y): (i32, i32)) -> (i32, i32) {
        (x * self.scale, y * self.scale)
    }

    /// A line through these points.
    pub(in crate::cli) fn line(
        &self,
        points: &[(i32, i32)],
        color: RGBColor,
        width: i32,
    ) -> Result<(), String> {
        let points = points.iter().map(|&point| self.at(point)).collect::<Vec<_>>();
        let style = color.stroke_width((width * self.scale) as u32);
        self.area.draw(&PathElement::new(points, style)).map_err(text)
    }

    /// A filled box between two corners.
    pub(in crate::cli) fn fill(
        &self,
        from: (i32, i32),
        to: (i32, i32),
        color: RGBColor,
    ) -> Result<(), String> {
        let corners = [self.at(from), self.at(to)];
        self.area.draw(&Rectangle::new(corners, color.filled())).map_err(text)
    }

    /// A filled circle.
    pub(in crate::cli) fn dot(
        &self,
        at: (i32, i32),
        radius: i32,
        color: RGBColor,
    ) -> Result<(), String> {
        let circle = Circle::new(self.at(at), radius * self.scale, color.filled());
        self.area.draw(&circle).map_err(text)
    }

    /// Words, anchored at a point.
    pub(in crate::cli) fn words(
        &self,
        words: &str,
        at: (i32, i32),
        anchor: (HPos, VPos),
        size: i32,
        color: RGBColor,
    ) -> Result<(), String> {
        self.turned(words, at, anchor, size, color, FontTransform::None)
    }

    /// Words along a vertical axis.
    pub(in crate::cli) fn upward(
        &self,
        words: &str,
        at: (i32, i32),
        color: RGBColor,
    ) -> Result<(), String> {
        self.turned(words, at, MIDDLE, TEXT, color, FontTransform::Rotate270)
    }

    fn turned(
        &self,
        words: &str,
        at: (i32, i32),
        (h, v): (HPos, VPos),
        size: i32,
        color: RGBColor,
        turn: FontTransform,
    ) -> Result<(), String> {
        let font = (FONT, f64::from(size * self.scale)).into_font().transform(turn);
        let style = TextStyle::from(font).color(&color).pos(Pos::new(h, v));
        let (x, y) = self.at(at);
        // A bitmap's letters are centred together with the space for accents. Viewers of an SVG
        // centre the letters.
        let down = if self.scale == PNG_SCALE { size * self.scale / 7 } else { 0 };
        self.area.draw(&Text::new(words, (x, y + down), style)).map_err(text)
    }
}

/// An upper estimate of the width of words, from the average width of this font's letters.
pub(in crate::cli) fn width_of(words: &str, size: i32) -> i32 {
    words.chars().count() as i32 * size * 55 / 100
}
