//! What the ledger finds, and what it does not.

use super::*;
use crate::{Buffer, Devices, Gemm, Matrix};

/// Copies 4 elements from one buffer to another on that lane.
fn copy(lane: &Stream, from: &Buffer<f32>, to: &mut Buffer<f32>) -> Result<()> {
    // SAFETY: on the CPU device the copy has ended when it returns.
    unsafe { transfer(lane, (from.all(), 4), (to.all_mut(), 4), [1, 4]) }
}

fn two(devices: &Devices) -> [Buffer<f32>; 2] {
    [0, 1].map(|place| devices.at(place).upload(&[place as f32 + 1.0; 4]).unwrap())
}

#[test]
fn an_access_without_an_event_is_found() {
    let devices = Devices::cpu(2).unwrap();
    let [[first, _], [second, third]] = <[_; 2]>::try_from(devices.lanes::<2>().unwrap()).unwrap();
    let [mut a, mut b] = two(&devices);
    let c = devices.at(1).upload(&[3.0f32; 4]).unwrap();
    copy(&second, &a, &mut b).unwrap();
    // Two reads need no order, and neither do two uses on one lane.
    copy(&second, &a, &mut b).unwrap();
    // Place 0 writes what place 1 reads.
    let error = copy(&first, &c, &mut a).unwrap_err();
    assert!(matches!(error, Error::Unordered { .. }), "{error}");
    let error = error.to_string();
    assert!(
        error.starts_with("cpu:0 writes") && error.contains("of cpu:0, on lane 0: lane 2 has read")
    );
    assert!(error.ends_with("and no event orders the two"), "{error}");
    // A lane of the same device is ordered by an event alone, too. A mark before does not help.
    let early = third.mark(None).unwrap();
    assert!(copy(&third, &c, &mut b).is_err());
    first.after(&early).unwrap();
    assert!(copy(&first, &b, &mut a).is_err());
}

#[test]
fn an_event_orders_what_follows_it() {
    let devices = Devices::cpu(2).unwrap();
    let [[first], [second]] = <[_; 2]>::try_from(devices.lanes::<1>().unwrap()).unwrap();
    let [mut a, mut b] = two(&devices);
    copy(&second, &a, &mut b).unwrap();
    first.after(&second.mark(None).unwrap()).unwrap();
    copy(&first, &b, &mut a).unwrap();
    // Not the other way around.
    assert!(copy(&second, &a, &mut b).is_err());
    assert_eq!(b.to_vec().unwrap(), [1.0; 4]);
}

#[test]
fn an_access_without_permission_is_found() {
    let devices = Devices::cpu(2).unwrap().denying(1, 0);
    let [[first], [second]] = <[_; 2]>::try_from(devices.lanes::<1>().unwrap()).unwrap();
    let [mut a, mut b] = two(&devices);
    let error = copy(&second, &a, &mut b).unwrap_err().to_string();
    assert!(error.starts_with("cpu:1 reads") && error.ends_with("of cpu:0, without permission"));
    // It has the other direction.
    copy(&first, &b, &mut a).unwrap();
    assert_eq!(a.to_vec().unwrap(), [2.0; 4]);
}

/// No launch on one CPU device takes memory of another.
#[test]
fn a_launch_takes_its_own_devices_memory() {
    let devices = Devices::cpu(2).unwrap();
    let [a, b] = [0, 1].map(|place| Matrix::<f32>::zeros(devices.at(place), 2, 2).unwrap());
    let mut c = Matrix::<f32>::zeros(devices.at(0), 2, 2).unwrap();
    let stream = devices.at(0).stream().unwrap();
    let error = Gemm::new().run(&stream, a.view(), b.view(), c.view_mut()).unwrap_err();
    assert_eq!(error.to_string(), "B = cpu:1: must be on the stream's device, cpu:0");
    // A launch on a lane is noted, too: B's last writer is another lane.
    let [first, other] = devices.lanes::<2>().unwrap().remove(0);
    let [x, mut y] = [0; 2].map(|_| devices.at(0).upload(&[1.0f32; 4]).unwrap());
    copy(&other, &x, &mut y).unwrap();
    let y = crate::MatrixView::new(y.all(), 2, 2, [2, 1]).unwrap();
    let error = Gemm::new().run(&first, a.view(), y, c.view_mut()).unwrap_err();
    assert!(matches!(error, Error::Unordered { .. }), "{error}");
}
