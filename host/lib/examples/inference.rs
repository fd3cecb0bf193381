//! Two layers of a transformer's feed-forward network over a batch, on the device from end to end:
//! `Y = gelu(X W1 + b1) W2 + b2` for each sequence X.
//!
//! ```console
//! $ cargo run -p gpu-gemm --example inference              # 4 sequences of 32 tokens, 64 -> 256 -> 64
//! $ cargo run -p gpu-gemm --example inference -- 8 128 768
//! ```

use std::env;

use gpu_gemm::{
    Activation, Batch, BatchMut, Bias, Buffer, Device, Error, Gemm, Matrix, Result, Stream,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The weights of a feed-forward network, on a device.
pub struct FeedForward {
    /// width x hidden, and hidden elements.
    pub up: (Matrix<f32>, Buffer<f32>),
    /// hidden x width, and width elements.
    pub down: (Matrix<f32>, Buffer<f32>),
}

impl FeedForward {
    /// Random weights: `hidden = 4 width`.
    pub fn random(device: &Device, width: usize) -> Result<Self> {
        let hidden = 4 * width;
        let layer = |seed, rows: usize, cols: usize| -> Result<_> {
            // So that sums of `rows` products stay near 1.
            let scale = 1.0 / (rows as f32).sqrt();
            let weights = random(seed, rows * cols);
            let weights = weights.into_iter().map(|x| x * scale).collect::<Vec<_>>();
            let bias = random(seed + 1, cols);
            Ok((Matrix::from_row_major(device, rows, cols, &weights)?, device.upload(&bias)?))
        };
        Ok(FeedForward { up: layer(1, width, hidden)?, down: layer(3, hidden, width)? })
    }

    /// The network's output for `count` sequences of `tokens x width` that lie one after another.
    pub fn forward(
        &self,
        stream: &Stream,
        input: &Buffer<f32>,
        (count, tokens): (usize, usize),
    ) -> Result<Buffer<f32>> {
        let ((up, up_bias), (down, down_bias)) = (&self.up, &self.down);
        let (width, hidden) = (up.rows(), up.cols());
        let mut between = stream.device().uninit(count * tokens * hidden)?;
        let mut output = stream.device().uninit(count * tokens * width)?;

        let (narrow, wide) = ((tokens, width), (tokens, hidden));
        let (narrow_step, wide_step) = (tokens * width, tokens * hidden);
        let sequences = Batch::new(input.view(..)?, narrow, [width, 1], count, narrow_step)?;
        let hidden_to = BatchMut::new(between.view_mut(..)?, wide, [hidden, 1], count, wide_step)?;
        // Bias and GELU are applied to each sum before it is written: no pass of their own.
        Gemm::new()
            .bias(Bias::PerCol(up_bias.view(..)?))
            .activation(Activation::Gelu)
            .launch_batch(stream, sequences, Batch::repeat(up.view(), count), hidden_to)?;

        let hidden_from = Batch::new(between.view(..)?, wide, [hidden, 1], count, wide_step)?;
        let output_to =
            BatchMut::new(output.view_mut(..)?, narrow, [width, 1], count, narrow_step)?;
        Gemm::new().bias(Bias::PerCol(down_bias.view(..)?)).launch_batch(
            stream,
            hidden_from,
            Batch::repeat(down.view(), count),
            output_to,
        )?;
        Ok(output)
    }
}

/// The same in float64, element by element.
pub fn reference(network: &FeedForward, input: &[f32]) -> Result<Vec<f64>> {
    let layer = |(weights, bias): &(Matrix<f32>, Buffer<f32>), rows: &[f64]| -> Result<Vec<f64>> {
        let (k, n) = (weights.rows(), weights.cols());
        let (weights, bias) = (weights.to_row_major()?, bias.to_vec()?);
        let element = |row: usize, col: usize| {
            let products = (0..k).map(|p| rows[row * k + p] * f64::from(weights[p * n + col]));
            products.sum::<f64>() + f64::from(bias[col])
        };
        let rows = 0..rows.len() / k;
        Ok(rows
            .flat_map(|row| (0..n).map(move |col| (row, col)))
            .map(|(i, j)| element(i, j))
            .collect())
    };
    let input = input.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let between = layer(&network.up, &input)?.into_iter().map(gelu).collect::<Vec<_>>();
    layer(&network.down, &between)
}

/// `x (1 + erf(x / sqrt(2))) / 2`, with erf by its Taylor series: for the small arguments that come
/// here.
fn gelu(x: f64) -> f64 {
    let z = x / std::f64::consts::SQRT_2;
    let (mut term, mut sum) = (z, z);
    for n in 1..200 {
        term *= -z * z / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    x * (1.0 + sum * std::f64::consts::FRAC_2_SQRT_PI) / 2.0
}

/// Numbers from [-1, 1), the same for the same seed.
fn random(seed: u64, len: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// A batch through a random network; the largest error against float64.
pub fn run(device: &Device, [count, tokens, width]: [usize; 3]) -> Result<f64> {
    let network = FeedForward::random(device, width)?;
    let input = random(5, count * tokens * width);
    let on_device = device.upload(&input)?;
    let stream = device.stream()?;
    let output = network.forward(&stream, &on_device, (count, tokens))?.to_vec()?;
    let wanted = reference(&network, &input)?;
    let error = |(&got, &want): (&f32, &f64)| (f64::from(got) - want).abs();
    let largest =
        output.iter().zip(&wanted).map(error).fold(0.0, |a: f64, b| if a >= b { a } else { b });
    Ok(largest)
}

fn main() -> Result<()> {
    let mut sizes = [4, 32, 64];
    for (size, text) in sizes.iter_mut().zip(env::args().skip(1)) {
        let limit = "must be a whole number: sequences, tokens, width";
        *size = text.parse().map_err(|_| Error::argument("size", &text, limit))?;
    }
    let device = Device::best().device;
    let error = run(&device, sizes)?;
    let [count, tokens, width] = sizes;
    println!("{count} sequences of {tokens} x {width} on {device}: max |error| {error:.2e}");
    // Sums of at most 4 width products near 1 in all: far within this.
    let bound = 1e-5 * (width as f64).sqrt();
    assert!(error <= bound, "{error:e} > {bound:e}");
    Ok(())
}
