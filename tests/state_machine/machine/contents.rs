//! Contents: copies, host writes, memory known by its address, kernels.

use super::*;

impl Machine {
    // Contents.

    pub(super) fn copy(&mut self, random: &mut Random) {
        let (Some(dst), Some(mut src)) = (self.some(random), self.some(random)) else { return };
        // Two that fit are rare among random ones: look for one.
        let wanted = self.tensor(dst).clone();
        if random.chance(8) {
            // As it is.
        } else if let Some(fitting) =
            (0..self.live.len()).map(|i| (i + src) % self.live.len()).find(|&i| {
                i != dst
                    && self.live[i]
                        .tensor
                        .as_ref()
                        .is_some_and(|t| t.broadcast(&wanted.sizes).is_some())
            })
        {
            src = fitting;
        }
        let (to, from) = (self.tensor(dst).clone(), self.tensor(src).clone());
        let elements = from.broadcast(&to.sizes).map(|from| from.read());
        let converted = match &elements {
            Some(elements) if to.dtype != from.dtype => {
                match convert(elements, from.dtype, to.dtype) {
                    Some(converted) => Some(converted),
                    // Values whose conversion is for other tests.
                    None if random.chance(2) && self.is_quiet(&from, &to) => None,
                    None => return,
                }
            }
            _ => elements.clone(),
        };
        // SAFETY: two live handles.
        let code = unsafe {
            match random.below(2) {
                0 => aoti_torch_copy_(self.live[dst].handle, self.live[src].handle, 1),
                _ => aoti_torch_tensor_copy_(self.live[src].handle, self.live[dst].handle),
            }
        };
        let complex = (to.dtype == model::C128) != (from.dtype == model::C128);
        if complex {
            assert_eq!(code, 0x10, "complex converts to itself only");
        } else if elements.is_none() || model::may_share_places(&to.sizes, &to.strides) {
            assert_eq!(code, 0x12, "copy of {from:?} to {to:?}");
        } else {
            ok(code);
            match converted {
                Some(converted) => to.write(&converted),
                None => {
                    let bytes = to.numel() as usize * to.dtype.size;
                    to.write(&Memory { bytes: vec![0; bytes], known: vec![false; bytes] });
                }
            }
        }
    }

    /// Whether a conversion of any values is defined for these types and memory.
    pub(super) fn is_quiet(&self, from: &Tensor, to: &Tensor) -> bool {
        // The host's arena is compared byte for byte, so nothing unknown goes there.
        to.storage.place != Place::Borrowed && from.dtype != model::BOOL
    }

    pub(super) fn zero(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let tensor = self.tensor(i);
        // SAFETY: a live handle.
        let code = unsafe { aoti_torch_zero_(self.live[i].handle) };
        if model::may_share_places(&tensor.sizes, &tensor.strides) {
            assert_eq!(code, 0x12);
            return;
        }
        ok(code);
        let bytes = tensor.numel() as usize * tensor.dtype.size;
        tensor.write(&Memory { bytes: vec![0; bytes], known: vec![true; bytes] });
    }

    pub(super) fn data_ptr(&self, i: usize) -> *mut c_void {
        let mut pointer = null_mut();
        // SAFETY: a live handle and an output.
        ok(unsafe { aoti_torch_get_data_ptr(self.live[i].handle, &mut pointer) });
        pointer
    }

    /// Whether the host may use this tensor's pointer.
    pub(super) fn host_reaches(&self, tensor: &Tensor) -> bool {
        tensor.storage.place != Place::Device || self.memory != "device"
    }

    /// The host writes through a data pointer and says so.
    pub(super) fn host_write(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let tensor = self.tensor(i).clone();
        let handle = self.live[i].handle;
        if tensor.numel() == 0 || !self.host_reaches(&tensor) {
            // SAFETY: a live handle.
            let code = unsafe { aoti_wgpu_mark_written(handle) }.cast_signed();
            assert!(code == 0 || code == 0x12);
            if code == 0 && tensor.packed_view && tensor.numel() > 0 {
                // All of the dense buffer goes to the base; its contents may be old.
                self.forget(&tensor);
            }
            return;
        }
        let pointer = self.data_ptr(i).cast::<u8>();
        ok(aoti_wgpu_synchronize().cast_signed());
        let value = random.next() as u8 & 1;
        if tensor.packed_view {
            let overlaps = model::may_share_places(&tensor.sizes, &tensor.strides);
            let mut elements = tensor.read();
            if !overlaps {
                // SAFETY: the dense buffer holds all elements, and no work uses it.
                unsafe { pointer.write(value) };
                elements.bytes[0] = value;
                elements.known[0] = true;
            }
            // SAFETY: a live handle.
            let code = unsafe { aoti_wgpu_mark_written(handle) }.cast_signed();
            if overlaps {
                assert_eq!(code, 0x12);
            } else {
                ok(code);
                tensor.write(&elements);
            }
        } else {
            // SAFETY: the first element's first byte, in memory that no work uses.
            unsafe { pointer.write(value) };
            let at = tensor.places()[0];
            let mut memory = tensor.storage.memory.borrow_mut();
            memory.bytes[at] = value;
            memory.known[at] = true;
            drop(memory);
            // SAFETY: a live handle.
            ok(unsafe { aoti_wgpu_mark_written(handle) }.cast_signed());
        }
    }

    pub(super) fn forget(&self, tensor: &Tensor) {
        let bytes = tensor.numel() as usize * tensor.dtype.size;
        let mut elements = tensor.read();
        elements.known = vec![false; bytes];
        tensor.write(&elements);
        if tensor.storage.place == Place::Borrowed {
            self.learn_arena();
        }
    }

    /// Takes over what the arena holds.
    pub(super) fn learn_arena(&self) {
        ok(aoti_wgpu_synchronize().cast_signed());
        let mut memory = self.arena_storage.memory.borrow_mut();
        memory.bytes.copy_from_slice(bytemuck::cast_slice(&self.arena[..]));
        memory.known.fill(true);
    }

    pub(super) fn item(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let tensor = self.tensor(i).clone();
        let mut value = -1.0f64;
        // SAFETY: a live handle and an output.
        let code = unsafe { aoti_torch_item_float64(self.live[i].handle, &mut value) };
        if tensor.numel() != 1 {
            assert_eq!(code, 0x12);
            assert_eq!(value, -1.0, "an output was written by a call that failed");
            return;
        }
        let elements = tensor.read();
        if elements.known.iter().all(|&known| known)
            && let Some(wanted) = tensor.dtype.whole(&elements.bytes)
        {
            ok(code);
            assert_eq!(value, wanted);
        }
    }

    // Memory that is known by its address.

    pub(super) fn allocate(&mut self, random: &mut Random) {
        let bytes = random.pick(&[0usize, 1, 3, 4, 64, 100, 256, 700]);
        let mut pointer = null_mut();
        // SAFETY: an output.
        ok(unsafe { aoti_torch_mps_malloc(&mut pointer, bytes) });
        assert_eq!(pointer.is_null(), bytes == 0);
        if bytes > 0 {
            self.allocations
                .push(Allocation { pointer, storage: Storage::new(bytes, Place::Device) });
        }
    }

    pub(super) fn allocation(&self, random: &mut Random) -> Option<usize> {
        let count = self.allocations.len() as u64;
        (count > 0).then(|| random.below(count) as usize)
    }

    pub(super) fn memcpy(&mut self, random: &mut Random) {
        let Some(i) = self.allocation(random) else { return };
        let to = &self.allocations[i];
        let size = to.storage.bytes as u64;
        let offset = random.below(size) as usize;
        let bytes = random.below(size - offset as u64 + 1) as usize;
        let mut source: Vec<u8> = (0..bytes + 5).map(|_| random.next() as u8).collect();
        // SAFETY: both ranges lie in their memory.
        ok(unsafe { aoti_torch_mps_memcpy(to.pointer, offset, 5, bytes, source.as_mut_ptr()) });
        let mut memory = to.storage.memory.borrow_mut();
        memory.bytes[offset..offset + bytes].copy_from_slice(&source[5..]);
        memory.known[offset..offset + bytes].fill(true);
        drop(memory);
        source.fill(0xdd);
        // One byte more than there is.
        let long = size as usize - offset + 1;
        let mut source = vec![0u8; long];
        // SAFETY: the source is long enough; the destination is refused.
        let code =
            unsafe { aoti_torch_mps_memcpy(to.pointer, offset, 0, long, source.as_mut_ptr()) };
        assert_eq!(code, 0x12);
    }

    pub(super) fn copy_buffer(&mut self, random: &mut Random) {
        let (Some(a), Some(b)) = (self.allocation(random), self.allocation(random)) else { return };
        let (src, dst) = (&self.allocations[a], &self.allocations[b]);
        let from = random.below(src.storage.bytes as u64) as usize;
        let to = random.below(dst.storage.bytes as u64) as usize;
        let room = (src.storage.bytes - from).min(dst.storage.bytes - to);
        let bytes = random.below(room as u64 + 1) as usize;
        // SAFETY: both ranges lie in their memory.
        ok(unsafe { aoti_torch_mps_copy_buffer(src.pointer, dst.pointer, bytes, from, to) });
        let copied = src.storage.memory.borrow().clone();
        let mut memory = dst.storage.memory.borrow_mut();
        memory.bytes[to..to + bytes].copy_from_slice(&copied.bytes[from..from + bytes]);
        memory.known[to..to + bytes].copy_from_slice(&copied.known[from..from + bytes]);
    }

    pub(super) fn free(&mut self, random: &mut Random) {
        let Some(i) = self.allocation(random) else { return };
        let pointer = self.allocations[i].pointer;
        // SAFETY: not the start of an allocation.
        assert_eq!(unsafe { aoti_torch_mps_free(pointer.wrapping_byte_add(1)) }, 0x12);
        // SAFETY: an allocation that is freed once.
        ok(unsafe { aoti_torch_mps_free(pointer) });
        self.allocations.swap_remove(i);
        // SAFETY: refused.
        assert_eq!(unsafe { aoti_torch_mps_free(pointer) }, 0x12);
    }

    // Kernels.

    pub(super) fn library(
        &mut self,
    ) -> (AOTIMetalShaderLibraryHandle, AOTIMetalKernelFunctionHandle) {
        if let Some(library) = &self.library {
            return (library.handle, library.function);
        }
        let (mut handle, mut function) = (null_mut(), null_mut());
        // SAFETY: C strings and outputs.
        unsafe {
            ok(aoti_torch_mps_create_shader_library(SOURCE.as_ptr(), &mut handle));
            let name = c"next_value".as_ptr();
            ok(aoti_torch_mps_get_kernel_function(handle, name, &mut function));
            let mut none = null_mut();
            let name = c"no_such".as_ptr();
            assert_eq!(aoti_torch_mps_get_kernel_function(handle, name, &mut none), 0x12);
            assert!(none.is_null());
        }
        self.dead_functions.retain(|&dead| dead != function);
        self.library = Some(Library { handle, function });
        (handle, function)
    }

    pub(super) fn dispatch(&mut self, random: &mut Random) {
        // Kernels of integers, over whatever bytes: views of that type are made by from_pool.
        let ints: Vec<usize> = (0..self.live.len())
            .filter(|&i| {
                self.live[i].tensor.as_ref().is_some_and(|t| t.dtype == model::I32 && t.numel() > 0)
            })
            .collect();
        if ints.is_empty() {
            return;
        }
        let (out, input) = (random.pick(&ints), random.pick(&ints));
        let (to, from) = (self.tensor(out).clone(), self.tensor(input).clone());
        if self.memory == "host" {
            return;
        }
        // A kernel counts elements from the true offset, whatever the strides are.
        let reach = |t: &Tensor| (t.storage_bytes / 4) as i64 - t.offset;
        let length = random.below(reach(&to).min(reach(&from)) as u64 + 1) as usize;
        let start = |t: &Tensor| t.base + t.offset as usize * 4;
        let (at, source) = (start(&to), start(&from));
        let bytes = length * 4;
        let apart = at + bytes <= source || source + bytes <= at;
        if to.same_memory(&from) && !apart && at != source {
            return;
        }
        // Blobs that overlap and are not whole elements apart are refused in one dispatch.
        let between = at.abs_diff(source);
        if to.storage.place == Place::Borrowed && to.same_memory(&from) && between % 4 != 0 {
            return;
        }
        // Where another blob lies over part of what is written, its copy is another's:
        // arguments of one dispatch that overlap are joined, so this is fine.
        let (_, function) = self.library();
        let step = random.below(1000) as i64 - 500;
        // SAFETY: live handles.
        unsafe {
            ok(aoti_torch_mps_start_encoding(function));
            ok(aoti_torch_mps_set_arg_tensor(function, 0, self.live[out].handle));
            ok(aoti_torch_mps_set_arg_tensor(function, 1, self.live[input].handle));
            ok(aoti_torch_mps_set_arg_int(function, 2, step));
            match random.below(3) {
                0 => ok(aoti_torch_mps_dispatch_single(function, length as u64)),
                1 => ok(aoti_torch_mps_dispatch_single_with_group_size(
                    function,
                    length as u64,
                    random.pick(&[1, 3, 32, 1000]),
                )),
                _ => ok(aoti_torch_mps_dispatch_array(function, [length as u64].as_ptr(), 1)),
            }
        }
        let copied = from.storage.memory.borrow().clone();
        let mut memory = to.storage.memory.borrow_mut();
        for i in 0..length {
            let (at, source) = (at + i * 4, source + i * 4);
            let value = i32::from_ne_bytes(copied.bytes[source..source + 4].try_into().unwrap());
            let value = value.wrapping_add(step as i32).to_ne_bytes();
            let known = copied.known[source..source + 4].iter().all(|&k| k);
            memory.bytes[at..at + 4].copy_from_slice(&value);
            memory.known[at..at + 4].fill(known);
        }
        drop(memory);
        let unknown = !to.storage.memory.borrow().known.iter().all(|&k| k);
        if to.storage.place == Place::Borrowed && unknown {
            self.learn_arena();
        }
    }

    pub(super) fn end_library(&mut self, random: &mut Random) {
        if let Some(library) = self.library.take() {
            if let Some(i) = self.some(random) {
                // Set and never dispatched.
                // SAFETY: live handles.
                unsafe {
                    ok(aoti_torch_mps_start_encoding(library.function));
                    ok(aoti_torch_mps_set_arg_tensor(library.function, 0, self.live[i].handle));
                }
            }
            // SAFETY: a live library, then a dead one.
            unsafe {
                ok(aoti_torch_mps_delete_shader_library(library.handle));
                assert_eq!(aoti_torch_mps_delete_shader_library(library.handle), 0x12);
            }
            self.dead_functions.push(library.function);
        }
    }

    pub(super) fn order(&mut self, random: &mut Random) {
        match random.below(4) {
            0 => ok(aoti_wgpu_trim().cast_signed()),
            1 => aoti_wgpu_set_flush_interval(random.pick(&[0, 1, 2, 7, 64])),
            2 => cleanup_memory(),
            _ => {
                ok(aoti_wgpu_synchronize().cast_signed());
                self.check_arena();
            }
        }
    }
}
