//! Finds figures by which the choice loses less: one after the other, each a little larger or
//! smaller.

use std::collections::BTreeMap;

use crate::{
    figures::{Figures, most_gflops, place, with},
    record::{Measured, predict_us, predicted},
};

/// A candidate's weight is its predicted time to the power of minus this: one that is predicted to
/// take a tenth longer than another counts a fifth of it. So the loss has a slope.
const SHARPNESS: f64 = 16.0;

/// Candidates whose times are to be right: those that take at most so many times as long as the
/// fastest.
const NEAR: f64 = 2.0;

/// The weight of the logarithm of the choice's loss at known sizes, and the loss that is allowed.
const OF_CHOICES: f64 = 20.0;
const ALLOWED: f64 = 0.02;

/// The weight of the squared logarithm of a figure over what it was, and the most that this is.
const OF_CHANGES: f64 = 0.3;
const MOST: f64 = 0.7;

/// Steps of a figure's logarithm, one after the other.
const STEPS: [f64; 5] = [0.2, 0.1, 0.05, 0.025, 0.0125];

/// The figures by which the choice among the candidates of these products loses little.
pub(crate) fn fitted(products: &[Measured], known: &Figures) -> Figures {
    // By figure first: the speeds, then the shares of lone blocks.
    let mut used = BTreeMap::<_, Vec<_>>::new();
    for (at, product) in products.iter().enumerate() {
        for (candidate, timed) in product.timed.iter().enumerate() {
            let keys = place(timed.entry).map(|place| (0..5).map(move |number| (number, place)));
            let keys = keys.into_iter().flatten();
            keys.for_each(|key| used.entry(key).or_default().push((at, candidate)));
        }
    }
    let us = predicted(products, known);
    let terms = products.iter().zip(&us).map(|(product, us)| term(product, us)).collect();
    let mut descent = Descent { products, known, figures: known.clone(), us, terms };
    for step in STEPS {
        loop {
            let before = descent.terms.iter().sum::<f64>();
            for (key, candidates) in &used {
                let _ =
                    descent.moves(*key, candidates, step) || descent.moves(*key, candidates, -step);
            }
            if before - descent.terms.iter().sum::<f64>() <= 1e-4 * products.len() as f64 {
                break;
            }
        }
    }
    descent.figures
}

/// A figure: its number in its row, and the row.
type Key = (usize, &'static str);

struct Descent<'a> {
    products: &'a [Measured],
    known: &'a Figures,
    figures: Figures,
    /// Of each product: the predicted times of its candidates, and what it adds to the sum that
    /// becomes smaller.
    us: Vec<Vec<f64>>,
    terms: Vec<f64>,
}

impl Descent<'_> {
    /// Moves a figure, if that is better. What is 0 or 1 is not counted, and stays.
    fn moves(&mut self, (number, place): Key, candidates: &[(usize, usize)], step: f64) -> bool {
        let (known, was) = (self.known[place][number], self.figures[place][number]);
        // Three digits.
        let value = format!("{:.2e}", was * step.exp()).parse().unwrap_or(was);
        let change = |value: f64| (value / known).ln();
        let most = match number {
            0 => most_gflops(place).max(known),
            1 => 1.0,
            _ => f64::INFINITY,
        };
        if known == 1.0 || value > most || change(value).abs() > MOST || change(value).is_nan() {
            return false;
        }
        let mut sum = (change(value).powi(2) - change(was).powi(2)) * OF_CHANGES;
        let mut figures = self.figures.clone();
        figures.entry(place).and_modify(|values| values[number] = value);
        let (mut entries, mut times) = (BTreeMap::new(), BTreeMap::<usize, Vec<f64>>::new());
        for &(at, candidate) in candidates {
            let timed = &self.products[at].timed[candidate];
            let entry =
                entries.entry(timed.entry.name()).or_insert_with(|| with(&figures, timed.entry));
            let us = times.entry(at).or_insert_with(|| self.us[at].clone());
            us[candidate] = predict_us(entry, timed);
        }
        let terms =
            times.iter().map(|(&at, us)| (at, term(&self.products[at], us))).collect::<Vec<_>>();
        sum += terms.iter().map(|(at, term)| term - self.terms[*at]).sum::<f64>();
        if sum < 0.0 {
            self.figures = figures;
            terms.into_iter().for_each(|(at, term)| self.terms[at] = term);
            times.into_iter().for_each(|(at, us)| self.us[at] = us);
        }
        sum < 0.0
    }
}

/// What a product adds: the logarithm of the loss that is expected if candidates are taken by their
/// weights, and the squared errors of the times near the fastest.
fn term(product: &Measured, us: &[f64]) -> f64 {
    let fastest = product.fastest_us();
    let shortest = us.iter().copied().fold(f64::INFINITY, f64::min);
    let (mut weights, mut loss, mut near, mut errors) = (0.0, 0.0, 1.0, 0.0);
    for (timed, &us) in product.timed.iter().zip(us).filter(|(_, us)| us.is_finite()) {
        let weight = (us / shortest).powf(-SHARPNESS);
        weights += weight;
        loss += weight * (timed.us / fastest).ln();
        if timed.us <= NEAR * fastest && !product.held {
            near += 1.0;
            errors += (us / timed.us).ln().powi(2).min(1.0);
        }
    }
    let lost = (product.loss(us).ln() - ALLOWED).max(0.0);
    let of_choice = if product.weight > 1.0 { OF_CHOICES * lost } else { 0.0 };
    of_choice + product.weight * (loss / weights + errors / near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{figures::known, record::tests::record};

    /// The kernel that is the faster one in the record is selected after the fit.
    #[test]
    fn figures_follow_the_times() {
        let products = record(
            "1024,1024,1024,1,nn,,wgmma_bf16_128x128x64_nn,9\n\
             1024,1024,1024,1,nn,,wgmma_bf16_64x128x64_nn,14\n",
        )
        .unwrap();
        let known = known();
        let figures = fitted(&products, &known);
        let [before, after] = [&known, &figures].map(|of| predicted(&products, of).remove(0));
        assert!(before[0] > before[1] && after[0] < after[1], "{before:?} {after:?}");
        assert_ne!(known["wgmma_half_64x128x64"], figures["wgmma_half_64x128x64"]);
    }
}
