//! Tests of boxes.

use super::*;
use crate::Matrix;

const SHAPE: BoxShape = BoxShape { rows: 8, cols: 16, swizzle: 64 };

/// What a kernel that copies boxes of 8 x 16 is given.
fn bind(boxes: Boxes<f32>) -> std::result::Result<Map, String> {
    let stream = Device::cpu().stream().unwrap();
    AnyBoxes::from(boxes).described(&stream, "map", false).map_err(|unbound| match unbound {
        Unbound::Refused(what) => what,
        Unbound::Failed(error) => error.to_string(),
    })
}

#[test]
fn matrices_are_described_innermost_first() {
    let buffer = Device::cpu().zeros::<f32>(2000).unwrap();
    let map = bind(Boxes::new(buffer.view(4..).unwrap(), [3, 10, 18], [640, 64], SHAPE).unwrap());
    let map = map.unwrap();
    assert_eq!(map.as_ptr() as u64, buffer.address() + 16);
    let description = map.description();
    assert_eq!((description.extents, description.strides), ([18, 10, 3], [256, 2560]));
    assert_eq!((description.box_extents, description.element), ([16, 8, 1], 4));
    assert_eq!(description.swizzle, 64);
    // Unused strides get values that the driver accepts.
    let one = bind(Boxes::new(buffer.view(..).unwrap(), [1, 10, 18], [1, 64], SHAPE).unwrap());
    assert_eq!(one.unwrap().description().strides, [256, 2560]);
    let row = bind(Boxes::new(buffer.view(..).unwrap(), [1, 1, 18], [1, 1], SHAPE).unwrap());
    assert_eq!(row.unwrap().description().strides, [80, 80]);
    let rows = bind(Boxes::new(buffer.view(..).unwrap(), [10, 1, 18], [64, 1], SHAPE).unwrap());
    assert_eq!(rows.unwrap().description().strides, [80, 256]);
}

#[test]
fn a_view_is_described_as_it_lies() {
    let matrix = Matrix::<f32>::zeros(&Device::cpu(), 10, 64).unwrap();
    let part = bind(Boxes::of(matrix.view().sub(2..10, 4..22).unwrap(), SHAPE).unwrap()).unwrap();
    let description = part.description();
    assert_eq!(part.as_ptr() as u64, matrix.buffer().address() + (2 * 64 + 4) * 4);
    assert_eq!((description.extents, description.strides), ([18, 8, 1], [256, 2048]));
    let error = Boxes::of(matrix.view().t(), SHAPE).unwrap_err().to_string();
    assert!(
        error.starts_with("matrix.strides() = [1, 64]: the elements of a row must be"),
        "{error}"
    );
    // One column is contiguous in any case.
    Boxes::of(matrix.view().sub(0..1, 0..10).unwrap().t(), SHAPE).unwrap();
}

#[test]
fn too_few_elements_are_named() {
    let buffer = Device::cpu().zeros::<f32>(2000).unwrap();
    let new = |extents, strides| {
        Boxes::new(buffer.view(..).unwrap(), extents, strides, SHAPE)
            .map_err(|error| error.to_string())
    };
    // 2 * 640 + 9 * 64 + 144 = 2000.
    new([3, 10, 144], [640, 64]).unwrap();
    let error =
        "elements.len() = 2000: must be at least 2001 for extents [3, 10, 145], strides [640, 64]";
    assert_eq!(new([3, 10, 145], [640, 64]).unwrap_err(), error);
    for (extents, strides) in [
        ([usize::MAX; 3], [usize::MAX; 2]),
        ([2, 1, 1], [usize::MAX, 0]),
        ([1, usize::MAX, 1], [0, 2]),
        ([1, 1, usize::MAX], [0, 0]),
    ] {
        let error = new(extents, strides).unwrap_err();
        assert!(error.starts_with("elements.len() = 2000: must be at least "), "{error}");
    }
}

#[test]
fn what_tma_does_not_take_is_refused() {
    let buffer = Device::cpu().zeros::<f32>(2000).unwrap();
    for (start, extents, strides, what) in [
        (3, [1, 10, 18], [0, 64], "is no multiple of sixteen bytes"),
        (0, [1, 10, 18], [0, 18], "map: 72 bytes from one row to the next: a tensor map wants"),
        (
            0,
            [2, 10, 18],
            [201, 20],
            "map: 804 bytes from one matrix to the next: a tensor map wants",
        ),
        (0, [1, 0, 18], [0, 20], "map: 0 rows: a tensor map has 1 to 2147483648"),
        (0, [0, 1, 18], [0, 20], "map: 0 matrices: a tensor map has 1 to 2147483648"),
        (0, [1, 1 << 33, 1], [0, 0], "map: 8589934592 rows: a tensor map has 1 to 2147483648"),
    ] {
        let boxes = Boxes::new(buffer.view(start..).unwrap(), extents, strides, SHAPE).unwrap();
        let refused = bind(boxes).unwrap_err();
        assert!(refused.starts_with("map: ") && refused.contains(what), "{refused}");
    }
}
