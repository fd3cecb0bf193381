//! Memory, copies that are on their way, and streams that wait for one another.

use super::*;

with_driver! {
    fn bytes_come_back_and_every_change_is_waited_for("") {
        let context = open();
        let mut memory = Memory::alloc(&context, 64).unwrap();
        assert_eq!(calls(), ["cuMemAlloc_v2"]);
        memory.fill_u8(0, 0xff, 64).unwrap();
        assert_eq!(calls(), ["cuCtxSynchronize", "cuMemsetD8_v2", "cuCtxSynchronize"]);
        memory.fill_u8(4, 4, 8).unwrap();
        memory.write(13, &[7, 8, 9]).unwrap();
        calls();
        let mut bytes = [0; 14];
        memory.read(3, &mut bytes).unwrap();
        assert_eq!(calls(), ["cuCtxSynchronize", "cuMemcpyDtoH_v2"]);
        assert_eq!(bytes, [255, 4, 4, 4, 4, 4, 4, 4, 4, 255, 7, 8, 9, 255]);
        drop(memory);
        drop(context);
        assert_eq!(calls(), ["cuMemFree_v2", "cuDevicePrimaryCtxRelease_v2"]);
    }

    fn rows_are_spaced_by_the_driver_and_copied_by_it("") {
        let device = crate::Device::cuda(0).unwrap();
        calls();
        let mut flat = device.pitched::<f32>(3, 2).unwrap();
        assert_eq!(flat.pitch(), 512);
        let cleared = ["cuCtxSynchronize", "cuMemsetD8_v2", "cuCtxSynchronize"];
        assert_eq!(calls(), [&["cuMemAllocPitch_v2"], &cleared[..]].concat());
        flat.write(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(calls(), ["cuCtxSynchronize", "cuMemcpy2D_v2", "cuCtxSynchronize"]);
        assert_eq!(flat.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        calls();
        let mut deep = device.pitched_3d::<f32>(200, 3, 2).unwrap();
        let values: Vec<_> = (0..1200).map(|i| i as f32).collect();
        deep.write(&values).unwrap();
        assert!(calls().contains(&"cuMemcpy3D_v2".into()));
        assert_eq!((deep.pitch(), deep.to_vec().unwrap()), (1024, values));
        let region = crate::Region { origin: [199, 1, 0], extent: [1, 2, 2] };
        let mut column = [0.0; 4];
        deep.read_region(region, &mut column).unwrap();
        assert_eq!(column, [399.0, 599.0, 999.0, 1199.0]);
        flat.copy_from([2, 0, 0], &deep, crate::Region { extent: [1, 2, 1], ..region }).unwrap();
        assert_eq!(flat.to_vec().unwrap(), [1.0, 2.0, 399.0, 4.0, 5.0, 599.0]);
        calls();
        drop((flat, deep));
        assert_eq!(calls(), ["cuMemFree_v2", "cuMemFree_v2"]);
    }

    fn rows_for_which_there_is_no_memory("") {
        let device = crate::Device::cuda(0).unwrap();
        for rows in [1 << 25, 1 << 40] {
            let error = device.pitched::<u8>(64, rows).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
            let needed = format!("{} bytes needed", 64 * rows);
            assert!(error.to_string().contains(&needed), "{error}");
        }
    }

    fn copies_are_on_their_way_until_somebody_looks("late=1") {
        let (device, stream) = opened();
        let mut pinned = device.pinned::<f32>(6).unwrap();
        let mut buffer = device.zeros::<f32>(12).unwrap();
        pinned.as_mut_slice().unwrap().copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        calls();
        let lines = crate::Lines { count: 3, len: 2, stride: 4 };
        stream.upload(&mut pinned, buffer.view_mut(1..).unwrap(), lines).unwrap();
        assert_eq!(calls(), ["cuEventCreate", "cuMemcpy2DAsync_v2", "cuEventRecord"]);
        // What is written now was not there when the copy began.
        pinned.as_mut_slice().unwrap().fill(9.0);
        assert_eq!(calls(), ["cuEventSynchronize", "cuEventDestroy_v2"]);
        let values = [0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 5.0, 6.0, 0.0];
        assert_eq!(buffer.to_vec().unwrap(), values);
        calls();
        let lines = crate::Lines { count: 1, len: 6, stride: 0 };
        stream.download(buffer.view(..).unwrap(), &mut pinned, lines).unwrap();
        assert_eq!(calls(), ["cuEventCreate", "cuMemcpyDtoHAsync_v2", "cuEventRecord"]);
        assert_eq!(pinned.as_slice().unwrap(), &values[..6]);
        // Of rows without gaps there is one copy; and one copy waits for the one before.
        let lines = crate::Lines { count: 2, len: 3, stride: 3 };
        calls();
        stream.upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).unwrap();
        stream.upload(&mut pinned, buffer.view_mut(6..).unwrap(), lines).unwrap();
        let upload = ["cuEventCreate", "cuMemcpyHtoDAsync_v2", "cuEventRecord"];
        let waited = [&["cuEventSynchronize", "cuEventDestroy_v2"], &upload[..]].concat();
        assert_eq!(calls(), [&upload[..], &waited].concat());
        // Not freed before (the driver of the tests would mind), and then it is.
        drop(pinned);
        assert_eq!(calls(), ["cuEventSynchronize", "cuEventDestroy_v2", "cuMemFreeHost"]);
        stream.wait_for(&stream.record().unwrap()).unwrap();
        assert!(calls().contains(&"cuStreamWaitEvent".into()));
    }

    fn a_copy_that_fails_is_waited_for("late=1 cuEventRecord=700") {
        let (device, stream) = opened();
        let (mut pinned, mut buffer) = (device.pinned(2).unwrap(), device.zeros::<f32>(2).unwrap());
        calls();
        let lines = crate::Lines { count: 1, len: 2, stride: 0 };
        let error = stream.upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).unwrap_err();
        assert!(matches!(error, Error::Driver { code: 700, .. }), "{error}");
        assert!(calls().contains(&"cuStreamSynchronize".into()));
        drop(pinned);
        assert_eq!(calls(), ["cuMemFreeHost"]);
    }

    fn what_may_be_on_its_way_is_never_freed("late=1 cuEventSynchronize=700") {
        let (device, stream) = opened();
        let (mut pinned, mut buffer) = (device.pinned(2).unwrap(), device.zeros::<f32>(2).unwrap());
        let lines = crate::Lines { count: 1, len: 2, stride: 0 };
        stream.upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).unwrap();
        let error = pinned.as_slice().unwrap_err();
        assert!(matches!(error, Error::Driver { code: 700, .. }), "{error}");
        assert!(pinned.as_slice().unwrap_err().to_string().contains("the driver has lost"));
        assert!(stream.upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).is_err());
        calls();
        drop(pinned);
        assert!(!calls().contains(&"cuMemFreeHost".into()));
    }

    fn host_memory_that_cannot_be_locked("cuMemAllocHost_v2=2") {
        let error = crate::Device::cuda(0).unwrap().pinned::<f32>(2).unwrap_err();
        let expected = "out of memory on this machine, page-locked: 8 bytes needed, ";
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    fn a_stream_waits_for_another_that_uses_the_same_memory("") {
        let device = crate::Device::cuda(0).unwrap();
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let mut buffer = device.zeros::<f32>(8).unwrap();
        let mut pinned = [0; 2].map(|_| device.pinned::<f32>(8).unwrap());
        let lines = crate::Lines { count: 1, len: 8, stride: 8 };
        let waits = || calls().iter().filter(|call| **call == "cuStreamWaitEvent").count();
        waits();
        let [first, second] = &mut pinned;
        streams[0].upload(first, buffer.view_mut(..).unwrap(), lines).unwrap();
        assert_eq!(waits(), 0, "nobody has used it");
        streams[1].download(buffer.view(..).unwrap(), second, lines).unwrap();
        assert_eq!(waits(), 1, "what is read was written on another stream");
        streams[1].download(buffer.view(..).unwrap(), second, lines).unwrap();
        assert_eq!(waits(), 0, "this stream has waited");
        streams[0].upload(first, buffer.view_mut(..).unwrap(), lines).unwrap();
        assert_eq!(waits(), 1, "what is written is read on another stream");
        streams[0].upload(first, buffer.view_mut(..).unwrap(), lines).unwrap();
        assert_eq!(waits(), 0, "one stream keeps its own order");
        // Whoever writes from here has waited for all.
        buffer.write(0, &[1.0; 8]).unwrap();
        waits();
        streams[1].download(buffer.view(..).unwrap(), second, lines).unwrap();
        assert_eq!(waits(), 0, "all has ended");
    }

    fn a_reader_that_may_still_queue_is_not_forgotten("") {
        let context = open();
        let uses = Uses::default();
        let stream = || Arc::new(Stream::new(&context).unwrap());
        let readers = (0..12).map(|_| stream()).collect::<Vec<_>>();
        readers.iter().for_each(|reader| uses.read_by(reader).unwrap());
        calls();
        uses.written_by(&stream()).unwrap();
        let waits = |calls: &[String]| calls.iter().filter(|call| *call == "cuStreamWaitEvent").count();
        assert_eq!(waits(&calls()), 12);
        // Those that are closed are waited for by those that come after, and forgotten.
        for reader in &readers {
            uses.read_by(reader).unwrap();
            reader.close();
        }
        calls();
        uses.written_by(&stream()).unwrap();
        // Eight, and the one that wrote before.
        assert_eq!(waits(&calls()), 9);
    }

    fn a_wait_that_the_driver_refuses_is_its_error("cuStreamWaitEvent=700") {
        let device = crate::Device::cuda(0).unwrap();
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let mut buffer = device.zeros::<f32>(8).unwrap();
        let mut pinned = device.pinned::<f32>(8).unwrap();
        let lines = crate::Lines { count: 1, len: 8, stride: 8 };
        streams[0].upload(&mut pinned, buffer.view_mut(..).unwrap(), lines).unwrap();
        let (kernel, config) = (&gpu::lessons::vec_add::vec_add, LaunchConfig::new([1, 1, 1], [256, 1, 1]));
        let (a, mut c) = (device.zeros::<f32>(8).unwrap(), device.zeros::<f32>(8).unwrap());
        // SAFETY: eight elements of each; nothing is launched.
        let error = unsafe { streams[1].launch(kernel, &config, (8, &buffer, &a, &mut c)) };
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Driver { code: 700, .. }), "{error}");
        assert_eq!(error.exit_code(), 4);
    }

    fn a_variable_is_found_written_and_read("") {
        use simt::device::*;
        global! { static TABLE: [u32; 2]; }
        constant! { static MISSING: [u32; 2]; }
        let device = crate::Device::cuda(0).unwrap();
        let symbol = device.symbol(&TABLE).unwrap();
        assert_eq!(symbol.bytes(), 8);
        calls();
        symbol.write(&[3, 4]).unwrap();
        assert_eq!(calls(), ["cuCtxSynchronize", "cuMemcpyHtoD_v2", "cuCtxSynchronize"]);
        assert!(symbol.write(&[1]).is_err());
        assert_eq!(calls(), [""; 0], "nothing is written");
        assert_eq!(device.symbol(&TABLE).unwrap().read().unwrap(), [3, 4]);
        let error = device.symbol(&MISSING).unwrap_err().to_string();
        assert!(error.starts_with("symbol = MISSING: sm_80/variables.ptx has no such variable"), "{error}");
    }

    fn a_variable_of_another_size("table=12") {
        use simt::device::*;
        global! { static TABLE: [u32; 2]; }
        let error = crate::Device::cuda(0).unwrap().symbol(&TABLE).unwrap_err().to_string();
        let expected = "symbol = TABLE of 12 bytes in sm_80/variables.ptx: the source has 8 bytes";
        assert!(error.starts_with(expected), "{error}");
    }

    fn a_buffer_is_cleared_where_zeros_are_asked_for_alone("") {
        let device = crate::Device::cuda(0).unwrap();
        calls();
        let cleared = |buffer: crate::Buffer<f32>| {
            assert_eq!(buffer.len(), 16);
            calls().iter().any(|name| name.starts_with("cuMemset"))
        };
        assert!(!cleared(device.uninit(16).unwrap()));
        assert!(cleared(device.zeros(16).unwrap()));
    }

    fn from_another_thread("") {
        let context = open();
        let mut memory = Memory::alloc(&context, 4).unwrap();
        drop(context);
        std::thread::spawn(move || {
            memory.write(0, &[1, 2, 3, 4]).unwrap();
            drop(memory);
        })
        .join()
        .unwrap();
        assert_eq!(calls().last().unwrap(), "cuDevicePrimaryCtxRelease_v2");
    }

    fn no_bytes_need_no_driver("") {
        let context = open();
        let mut memory = Memory::alloc(&context, 0).unwrap();
        assert_eq!((memory.address(), memory.len()), (0, 0));
        memory.write(0, &[]).unwrap();
        memory.read(0, &mut []).unwrap();
        memory.fill_u8(0, 1, 0).unwrap();
        drop(memory);
        assert!(calls().is_empty());
    }

    fn outside_the_memory("") {
        let context = open();
        let mut memory = Memory::alloc(&context, 8).unwrap();
        calls();
        for error in [
            memory.write(6, &[0; 3]).unwrap_err(),
            memory.read(9, &mut []).unwrap_err(),
            memory.read(usize::MAX, &mut [0]).unwrap_err(),
            memory.fill_u8(0, 0, 9).unwrap_err(),
            memory.fill_u8(4, 0, usize::MAX).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Argument { .. }), "{error}");
        }
        assert!(calls().is_empty());
    }

    fn nobody_is_noted_as_a_user_of_no_bytes("") {
        let device = crate::Device::cuda(0).unwrap();
        let streams = [0; 2].map(|_| device.stream().unwrap());
        let mut empty = [0; 2].map(|_| device.uninit::<f32>(0).unwrap());
        let context = open();
        // SAFETY: it has no bytes.
        let lent = unsafe { Memory::foreign(&context, 0x1000, 0) };
        let own = Memory::alloc(&context, 0).unwrap();
        // A scope notes the stream of memory that it is lent, whatever its length.
        assert!(!Arc::ptr_eq(lent.uses(), own.uses()));
        calls();
        for (buffer, stream) in empty.iter_mut().zip(&streams) {
            buffer.view_mut(..).unwrap().address_on(stream).unwrap();
        }
        // None waits for the other.
        assert_eq!(calls(), [""; 0]);
    }

    fn out_of_memory_names_both_amounts("") {
        let context = open();
        let _taken = Memory::alloc(&context, 1 << 29).unwrap();
        // The second amount is beyond what the driver takes for a size at all.
        for bytes in [(1 << 29) + 1, usize::MAX] {
            match Memory::alloc(&context, bytes).unwrap_err() {
                Error::OutOfMemory { device, needed, free } => {
                    assert_eq!(device, "cuda:0 (Fake GPU)");
                    assert_eq!((needed, free), (bytes as u64, 1 << 29));
                }
                other => panic!("{other}"),
            }
        }
    }
}
