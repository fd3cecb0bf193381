//! A network's layers as one CUDA graph: captured once, launched for each input.
//!
//! ```console
//! $ cargo run --release -p gpu-gemm --example graph
//! ```

use std::time::Instant;

use gpu_gemm::{Activation, Device, Gemm, Graph, Matrix, Result, Stream};

/// The matrices: an input, the weights of all layers, and what each layer computes.
pub struct Network {
    x: Matrix<f32>,
    weights: Vec<Matrix<f32>>,
    values: Vec<Matrix<f32>>,
}

impl Network {
    /// Layers of `width` values, for `batch` inputs at a time.
    pub fn new(device: &Device, layers: usize, batch: usize, width: usize) -> Result<Self> {
        let weight = |layer: usize| {
            let element = |index: usize| ((index * 7 + layer) % 11) as f32 / 11.0 - 0.45;
            let values = (0..width * width).map(element).collect::<Vec<_>>();
            Matrix::from_row_major(device, width, width, &values)
        };
        let zeros = |_| Matrix::zeros(device, batch, width);
        Ok(Network {
            x: Matrix::zeros(device, batch, width)?,
            weights: (0..layers).map(weight).collect::<Result<_>>()?,
            values: (0..layers).map(zeros).collect::<Result<_>>()?,
        })
    }

    /// Launches every layer: values = relu(values of the layer before, times weights).
    pub fn launch(&mut self, stream: &Stream) -> Result<()> {
        let layer = Gemm::new().activation(Activation::Relu);
        for index in 0..self.weights.len() {
            let (before, after) = self.values.split_at_mut(index);
            let input = before.last().unwrap_or(&self.x);
            layer.launch(stream, input.view(), self.weights[index].view(), after[0].view_mut())?;
        }
        Ok(())
    }

    /// The same launches as a graph. The first call loads and allocates what they need; a capture
    /// can do neither.
    pub fn graph(&mut self, stream: &Stream) -> Result<Graph> {
        stream.prepare(|stream| self.launch(stream))?;
        stream.capture(|stream| self.launch(stream))
    }

    /// Launches the graph. It asks for all that it reads or writes, as a launch does, so it keeps
    /// no borrow in between.
    pub fn replay(&mut self, graph: &Graph, stream: &Stream) -> Result<()> {
        let inputs = [&self.x].into_iter().chain(&self.weights).map(|matrix| matrix.view().into());
        let outputs = self.values.iter_mut().map(|matrix| matrix.view_mut().into());
        graph.launch(stream, inputs.chain(outputs))
    }

    /// The next input.
    pub fn set_input(&mut self, x: &[f32]) -> Result<()> {
        self.x.write_row_major(x)
    }

    /// What the last layer computes.
    pub fn output(&self) -> Result<Vec<f32>> {
        self.values.last().map_or_else(|| self.x.to_row_major(), Matrix::to_row_major)
    }
}

fn main() -> Result<()> {
    let (layers, batch, width, count) = (16, 8, 256, 1000);
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let mut network = Network::new(&device, layers, batch, width)?;
    let graph = network.graph(&stream)?;
    for number in 0..3 {
        let x = (0..batch * width).map(|index| ((index + number) % 5) as f32).collect::<Vec<_>>();
        network.set_input(&x)?;
        network.replay(&graph, &stream)?;
        let replayed = network.output()?;
        network.launch(&stream)?;
        assert_eq!(network.output()?, replayed, "the same bits");
    }
    let start = Instant::now();
    for _ in 0..count {
        network.launch(&stream)?;
    }
    stream.synchronize()?;
    println!("{layers} launches: {:?}", start.elapsed() / count);
    let start = Instant::now();
    for _ in 0..count {
        network.replay(&graph, &stream)?;
    }
    stream.synchronize()?;
    println!("one graph:   {:?}", start.elapsed() / count);
    Ok(())
}
