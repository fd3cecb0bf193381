//! Draws a product from a seed. Most are small, and most are such that the library computes them.

use gpu::registry::{self, Access, Entry, Family, KERNELS, Scheme, Variant};
use gpu_gemm::{Activation, Compute, gemm::Target};
use tests::gemm::{Order, Place, Random, Side};

use crate::memory::{coincide, is_nested};
use crate::product::{Form, Kernel, Product, Types, Way, Wrong, extent};

/// What a product costs on the CPU device, in multiply-adds: of most products at most, of one in
/// 16, and of one in 256. The tiles of a named kernel may cost more. Then it is drawn so much more
/// rarely.
const MOST_WORK: [usize; 3] = [1 << 15, 1 << 18, 1 << 21];

/// What a thread costs for each stage, in multiply-adds.
const THREAD_WORK: usize = 256;

/// The kernels, each with the sum of the weights up to its own.
#[derive(Debug)]
pub struct Pool {
    kernels: Vec<(&'static Entry, u64)>,
}

impl Default for Pool {
    fn default() -> Self {
        Pool::new()
    }
}

/// What a kernel computes together: rows and columns of C, and k-steps; and its threads.
#[derive(Clone, Copy)]
struct Tile {
    sides: [usize; 3],
    threads: usize,
}

impl Tile {
    /// Where no kernel is named: that of the kernel that the CPU device takes for small products.
    const CHOSEN: Tile = Tile { sides: [4, 64, 1], threads: 0 };

    fn of(product: &registry::Product) -> Self {
        let [m, n, k] = product.variant.tile.map(|size| size as usize);
        // Lessons do not say their k-steps.
        Tile { sides: [m, n, k.max(8)], threads: product.block.iter().product::<u32>() as usize }
    }

    /// What a product of these sizes costs.
    fn work(&self, sizes: [usize; 3]) -> usize {
        let [down, across, stages] = [0, 1, 2].map(|i| sizes[i].div_ceil(self.sides[i]).max(1));
        let each = self.sides.iter().product::<usize>() + THREAD_WORK * self.threads;
        down.saturating_mul(across).saturating_mul(stages).saturating_mul(each)
    }
}

impl Pool {
    /// Every product of the registry.
    pub fn new() -> Self {
        let mut sum = 0;
        let kernels = KERNELS.iter().filter_map(|entry| Some((entry, entry.product.as_ref()?)));
        let is_of_floats =
            |product: &registry::Product| product.variant.operands.format().is_wide_float();
        let mut kernels = kernels.filter(|(_, product)| is_of_floats(product)).collect::<Vec<_>>();
        // So a seed draws the same kernel wherever the list has it.
        kernels.sort_unstable_by_key(|(entry, _)| entry.name());
        let kernels = kernels.into_iter().map(|(entry, product)| {
            sum += (1 << 26) / (Tile::of(product).work([1; 3]) as u64 + (1 << 16));
            (entry, sum)
        });
        Pool { kernels: kernels.collect() }
    }

    /// All kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &'static Entry> {
        self.kernels.iter().map(|(entry, _)| *entry)
    }

    pub(crate) fn draw(&self, random: &mut Random) -> &'static Entry {
        let all = self.kernels.last().map_or(1, |(_, sum)| *sum);
        let at = random.below(all as usize) as u64;
        let number = self.kernels.partition_point(|(_, sum)| *sum <= at);
        self.kernels[number].0
    }
}

/// True in `of` of 100 cases.
fn percent(random: &mut Random, of: usize) -> bool {
    random.below(100) < of
}

/// A size: 0, 1, few, an edge of a tile, any, many.
fn size(random: &mut Random, edge: usize) -> usize {
    match random.below(64) {
        0 => 0,
        1..5 => 1,
        5..30 => 2 + random.below(8),
        30..38 => (edge + random.below(3)).saturating_sub(1),
        38..48 => random.choose(&[7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129]),
        48..62 => 1 + random.below(100),
        62 => 100 + random.below(400),
        _ => 500 + random.below(6000),
    }
}

/// m, n, k of at most that much work, if one tile is not more.
fn sizes(random: &mut Random, tile: &Tile, most: usize) -> [usize; 3] {
    let mut sizes = tile.sides.map(|edge| size(random, edge));
    let least = tile.work([1; 3]);
    let mut tries = 0;
    while tile.work(sizes) > most.max(least) {
        // One side at a time, so that a long one often stays.
        let side = random.below(3);
        sizes[side] = match tries {
            0..6 => size(random, tile.sides[side]).min(sizes[side]),
            _ => sizes[side].min(tile.sides[side]) / (1 + random.below(2)),
        };
        tries += 1;
    }
    sizes
}

/// A place of a matrix that is read, or written.
fn place(random: &mut Random, size: (usize, usize), order: Option<Order>, read: bool) -> Place {
    let is_any = order.is_none();
    let order = order.unwrap_or_else(|| random.choose(&Order::BOTH));
    match random.below(if is_any { 100 } else { 50 }) {
        0..25 => Place::dense(size, order),
        25..50 => Place::padded(size, order, random.below(9)),
        // Gaps between elements, too.
        50..70 => {
            let (apart, run) =
                (1 + random.below(4), if order == Order::Rows { size.1 } else { size.0 });
            let between = run.max(1) * apart + random.below(5);
            Place::strided(if order == Order::Rows { [between, apart] } else { [apart, between] })
        }
        // Elements that are one, or rows that interleave. Of a C this may be wrong.
        70..85 if read => Place::strided([random.below(6), random.below(6)]),
        85..95 if read => {
            let other = random.below(200);
            Place::strided(if order == Order::Rows { [0, other] } else { [other, 0] })
        }
        95 => Place::strided([random.below(6), random.below(6)]),
        96 => Place::strided([1 + random.below(9), size.0.max(1) * (1 + random.below(3))]),
        _ => Place::dense(size, order),
    }
}

/// Elements from one matrix to the next.
fn step(random: &mut Random, place: &Place, size: (usize, usize), read: bool) -> usize {
    match random.below(16) {
        0..3 if read => 0,
        3 if read => random.below(7),
        // Matrices whose rows take turns, as far as there is room.
        4..6 => size.1.min(place.strides[0]),
        6 => random.below(9),
        _ => place.extent(size) + random.choose(&[0, 0, 0, 1, 2, 4, 7]),
    }
}

/// The order of A and B with which that kernel needs no other layout.
fn orders(variant: &Variant, c: Order) -> [Option<Order>; 2] {
    let Some(layout) = variant.layout else {
        let is_dense =
            matches!(variant.access, Access::Dense) || matches!(variant.family, Family::Lesson(_));
        return if is_dense { [Some(Order::Rows); 2] } else { [None; 2] };
    };
    let [a, b] = layout.k_major();
    // With a C of columns the kernel's A is B's transpose.
    let (a, b) = if c == Order::Rows { (a, b) } else { (b, a) };
    let of = |is_rows: bool| Some(if is_rows { Order::Rows } else { Order::Columns });
    [of(a), of(!b)]
}

/// A product. The same seed gives the same.
pub fn product(pool: &Pool, seed: u64) -> Product {
    let random = &mut Random::new(seed);
    let kernel = match random.below(100) {
        0..82 => Kernel::Chosen,
        82..86 => Kernel::AsOn(Target::H200),
        86..88 => Kernel::AsOn(Target::gpu((8, 0), 108)),
        _ => Kernel::Named(pool.draw(random)),
    };
    let entry = match kernel {
        Kernel::Named(entry) => Some(entry),
        _ => None,
    };
    let variant = entry.and_then(|entry| entry.product.as_ref()).map(|product| product.variant);
    let any = random.choose(&Types::all());
    let types = entry.and_then(Types::of_entry).unwrap_or(any);
    let scheme = variant.map_or(Scheme::Native, |variant| variant.scheme);
    let compute = match scheme {
        _ if percent(random, if entry.is_some() { 3 } else { 30 }) => random.choose(&[
            Compute::Native,
            Compute::Tf32,
            Compute::Fp32Bf16x6,
            Compute::Fp32F16x3,
        ]),
        Scheme::Native => Compute::Native,
        Scheme::Tf32 => Compute::Tf32,
        Scheme::Bf16x6 => Compute::Fp32Bf16x6,
        Scheme::F16x3 => Compute::Fp32F16x3,
    };
    let is_lesson = variant.is_some_and(|variant| matches!(variant.family, Family::Lesson(_)));
    let is_plain = is_lesson && !percent(random, 5);
    let most = MOST_WORK[match random.below(256) {
        0 => 2,
        1..17 => 1,
        _ => 0,
    }];
    let tile = entry.and_then(|entry| entry.product.as_ref()).map_or(Tile::CHOSEN, Tile::of);
    // A GPU's kernels have larger tiles than the CPU's.
    let most = if matches!(kernel, Kernel::AsOn(_)) { most / 4 } else { most };
    let mut size = sizes(random, &tile, most);
    // A long sum, or a long row or column, of few elements otherwise.
    if entry.is_none() && percent(random, 1) {
        size = [(); 3].map(|()| 1 + random.below(4));
        size[random.choose(&[0, 1, 2, 2])] = 1000 + random.below(9000);
    }
    let partials = percent(random, if is_plain { 1 } else { 6 })
        .then(|| random.choose(&[1, 2, 2, 3, 5, 8, 16, 100, 4096]));
    if partials.is_some() && !percent(random, 10) {
        size[2] = 65 + random.below(300);
    }
    let is_tma = variant.is_some_and(|variant| variant.layout.is_some());
    let split_k = percent(random, if is_tma { 20 } else { 2 }).then(|| 1 + random.below(8) as u32);
    let way = match random.below(100) {
        0..30 => Way::Run,
        30..45 => Way::Launch,
        45..65 => Way::Batch,
        65..72 => Way::Array,
        72..80 => Way::Slices,
        80..86 => Way::Arrays,
        _ => Way::Planned,
    };
    let may_be_batch =
        matches!(way, Way::Batch | Way::Array) || way == Way::Planned && percent(random, 30);
    let count = may_be_batch.then(|| match is_plain {
        true => 1,
        false => random.choose(&[0, 1, 1, 2, 2, 2, 3, 3, 5, 7]),
    });
    let c_order = match is_lesson {
        true => Order::Rows,
        false => random.choose(&Order::BOTH),
    };
    let fits = is_plain || percent(random, 85);
    let orders = match &variant {
        Some(variant) if fits => orders(variant, c_order),
        _ => [None; 2],
    };
    let [m, n, k] = size;
    let of = [(m, k), (k, n), (m, n)];
    let wants = [orders[0], orders[1], (fits && entry.is_some()).then_some(c_order)];
    // A request says no steps: batches of a plan are dense.
    let is_dense =
        is_plain && entry.is_some() || way == Way::Planned && count.is_some_and(|count| count > 1);
    let mut places = [0, 1, 2].map(|i| {
        let (size, read) = (of[i], i < 2);
        let place = match is_dense {
            true => Place::dense(size, wants[i].unwrap_or(Order::Rows)),
            false => place(random, size, wants[i], read),
        };
        let offset = random.choose(&[0, 0, 0, 1, 2, 3, 4, 8, 16]);
        let place = if percent(random, 20) { place.transposed() } else { place };
        let place = place.at(offset);
        match count {
            None => place,
            Some(count) if is_dense => place.batch(count, size.0 * size.1),
            Some(count) => place.batch(count, step(random, &place, size, read)),
        }
    });
    // A distance that is not needed may be any, within reason.
    if percent(random, 2) {
        for (place, (rows, cols)) in places.iter_mut().zip(of) {
            if rows <= 1 {
                place.strides[0] = random.below(1000);
            }
            if cols <= 1 {
                place.strides[1] = random.below(1000);
            }
        }
    }
    // ndarray has no array in which two elements might be one, and a distance of 0 counts.
    for (place, (rows, cols)) in places.iter_mut().zip(of) {
        if way == Way::Arrays && (rows * cols == 0 || !is_nested(place, (rows, cols))) {
            place.strides = [cols.max(1), 1];
        }
    }
    // The matrices of an array are borrowed, each by itself.
    if way == Way::Array
        && !coincide(&places[2].batch(1, 0), (m, n))
        && coincide(&places[2], (m, n))
    {
        places[2].step = extent(&places[2].batch(1, 0), (m, n));
    }
    let activation = match random.below(20) {
        _ if is_plain => Activation::Identity,
        0..11 => Activation::Identity,
        11..16 => Activation::Relu,
        16..18 => Activation::Gelu,
        18 => Activation::GeluTanh,
        _ => Activation::Silu,
    };
    let most = ((types.largest_sum() / (k as u64 + 4)).isqrt()).clamp(1, types.largest());
    let largest = if percent(random, 50) { most } else { 1 + random.below(most as usize) as u64 };
    let (alpha, beta) = match is_plain {
        true => (1.0, 0.0),
        false => (
            random.choose(&[1.0, 1.0, 1.0, 1.0, 0.0, -1.0, 2.0, 0.5, -0.25, 3.0]),
            random.choose(&[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, -1.0, 2.0, 0.5]),
        ),
    };
    // A smooth activation is neither 0 nor its argument where that is small.
    let (alpha, largest) = match activation {
        Activation::Identity | Activation::Relu => (alpha, largest),
        _ => (alpha * 0.5f64.powi((k.max(1).ilog2() / 2 + 1) as i32), largest.min(2)),
    };
    let bias = match random.below(10) {
        _ if is_plain => None,
        0..2 => Some(Side::Row),
        2..4 => Some(Side::Col),
        _ => None,
    };
    let workspace_limit =
        percent(random, 5).then(|| random.choose(&[0, 1000, 1 << 16, 1 << 20]) as u64);
    let mut product = Product {
        types,
        size,
        places,
        inverted: [[false; 2]; 3],
        shared: false,
        alpha,
        beta,
        bias,
        activation,
        largest,
        compute,
        kernel,
        split_k,
        partials,
        workspace_limit,
        prepared: [None; 2],
        way,
        prepares: percent(random, 4) && !matches!(way, Way::Run | Way::Slices | Way::Arrays),
        again: percent(random, 4),
        wrong: None,
        numbers: random.next(),
    };
    if way == Way::Arrays {
        product.inverted = [(); 3].map(|()| [percent(random, 10), percent(random, 10)]);
    }
    if types == Types::F32 && (scheme.is_split() || compute != Compute::Native) {
        slices(random, &mut product, scheme.is_split());
    }
    if percent(random, 2) {
        wrong(random, &mut product);
    }
    product
}

/// Matrices that are split before, and A and B in one memory.
fn slices(random: &mut Random, product: &mut Product, is_named: bool) {
    let has_room = !matches!(product.way, Way::Slices | Way::Arrays) && product.count() > 0;
    if !has_room || product.way == Way::Planned && !percent(random, 5) {
        return;
    }
    for form in &mut product.prepared {
        *form = percent(random, 40).then(|| match random.below(20) {
            0 => Form::Part,
            1..4 => Form::Transposed,
            _ => Form::Itself,
        });
    }
    // Slices are of one matrix: the same for each product of a batch.
    for (place, form) in product.places.iter_mut().zip(product.prepared) {
        if form.is_some() && percent(random, 80) {
            place.step = 0;
        }
    }
    // A and B of one size and order begin at one address.
    if is_named && product.way != Way::Planned && percent(random, 50) {
        let [m, n, k] = &mut product.size;
        let side = (*m).min(*n).min(*k).min(64);
        (*m, *n, *k) = (side, side, if percent(random, 70) { side } else { *k });
        product.shared = true;
        for (place, size) in product.places.iter_mut().zip([(side, *k), (*k, side), (side, side)]) {
            let order = if place.strides[1] == 1 { Order::Rows } else { Order::Columns };
            let padded = Place::padded(size, order, random.choose(&[0, 0, 1, 4, 64]));
            let step = if place.step == 0 { 0 } else { padded.extent(size) + random.below(3) };
            *place = Place { strides: padded.strides, step, ..*place };
        }
    }
}

/// A mistake, where the product has room for it.
fn wrong(random: &mut Random, product: &mut Product) {
    let has_elements = |i: usize| extent(&product.places[i], product.sizes()[i]) > 0;
    let is_view = !matches!(product.way, Way::Slices | Way::Arrays);
    if product.way == Way::Array && product.count() == 0 {
        return;
    }
    let mistake = match random.below(9) {
        0 => Wrong::Bias,
        1 if product.way == Way::Batch && product.count() > 0 => Wrong::Count,
        2 if product.size[2] > 0 => Wrong::Size,
        3 if is_view && has_elements(0) && has_elements(2) => Wrong::Shares,
        4 if is_view && has_elements(0) && has_elements(2) && product.count() == 1 => {
            Wrong::SharesLast
        }
        5 => Wrong::Splits,
        6 => Wrong::Partials,
        7 if product.way == Way::Planned => Wrong::PlannedSize,
        8 if product.way == Way::Planned => Wrong::PlannedStrides,
        _ => return,
    };
    product.wrong = Some(mistake);
    product.shared = false;
}
