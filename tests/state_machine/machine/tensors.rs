//! Tensors that come: new ones, blobs, views, clones.

use super::*;

impl Machine {
    // Tensors that come.

    pub(super) fn create(&mut self, random: &mut Random) {
        let sizes = Self::sizes(random);
        let dtype = if random.chance(4) { model::I32 } else { random.pick(&TYPES) };
        let mps = !random.chance(4);
        let given = random.chance(3);
        let strides = if given { Self::strides(random, &sizes) } else { model::contiguous(&sizes) };
        let pointer = if given { strides.as_ptr() } else { null() };
        let device = if mps { 13 } else { 0 };
        let mut handle = null_mut();
        // SAFETY: arrays of the rank.
        ok(unsafe {
            let rank = sizes.len() as i64;
            let make = match mps || random.chance(2) {
                true => aoti_torch_empty_strided,
                false => aoti_torch_empty_strided_pinned,
            };
            make(rank, sizes.as_ptr(), pointer, dtype.code, device, -1, &mut handle)
        });
        let bytes = model::extent(&sizes, &strides) as usize * dtype.size;
        let tensor = Tensor {
            storage: Storage::new(bytes, if mps { Place::Device } else { Place::Host }),
            base: 0,
            offset: 0,
            sizes,
            strides,
            dtype,
            mps,
            storage_bytes: bytes,
            packed_view: false,
        };
        self.keep(handle, Some(tensor));
        let made = self.live.len() - 1;
        let overlaps = {
            let tensor = self.tensor(made);
            model::may_share_places(&tensor.sizes, &tensor.strides)
        };
        if !overlaps && !random.chance(5) {
            self.fill(made, random);
        }
    }

    /// Writes known values through a copy from a blob on this thread's stack.
    pub(super) fn fill(&mut self, i: usize, random: &mut Random) {
        let tensor = self.tensor(i);
        let whole = random.chance(2);
        let mut elements = Memory::default();
        for _ in 0..tensor.numel() {
            let bytes = match whole {
                true => tensor.dtype.of_whole(random.below(101) as f64),
                false if tensor.dtype == model::BOOL => vec![(random.next() & 1) as u8],
                false => (0..tensor.dtype.size).map(|_| random.next() as u8).collect(),
            };
            elements.bytes.extend(bytes);
        }
        elements.known = vec![true; elements.bytes.len()];
        let mut source = elements.bytes.clone();
        let blob = host_blob(&mut source, &tensor.sizes, tensor.dtype);
        // SAFETY: two live handles.
        ok(unsafe { aoti_torch_copy_(self.live[i].handle, blob, random.below(2) as i32) });
        // SAFETY: a live handle.
        ok(unsafe { aoti_torch_delete_tensor_object(blob) });
        // A copy has taken its source when it returns.
        source.fill(0xee);
        tensor.write(&elements);
    }

    pub(super) fn blob_of_host(&mut self, random: &mut Random) {
        let dtype = random.pick(&TYPES);
        let sizes = Self::sizes(random);
        let strides = if random.chance(2) {
            Self::strides(random, &sizes)
        } else {
            model::contiguous(&sizes)
        };
        let bytes = model::extent(&sizes, &strides) as usize * dtype.size;
        let offset = random.below(4) as i64;
        let end = offset as usize * dtype.size + bytes;
        if end > ARENA {
            return;
        }
        // Often near the start, so that blobs overlap.
        let room = if random.chance(3) { ARENA - end } else { (ARENA - end).min(64) };
        let base = random.below(room as u64 + 1) as usize / dtype.size * dtype.size;
        let mps = random.chance(2);
        let mut handle = null_mut();
        let pointer = self.arena_pointer().wrapping_add(base).cast::<c_void>();
        // SAFETY: the arena outlives all handles, and the layout ends within it.
        ok(unsafe {
            aoti_torch_create_tensor_from_blob_v2(
                pointer,
                sizes.len() as i64,
                sizes.as_ptr(),
                strides.as_ptr(),
                offset,
                dtype.code,
                if mps { 13 } else { 0 },
                0,
                &mut handle,
                0,
                null(),
                0,
            )
        });
        let tensor = Tensor {
            storage: self.arena_storage.clone(),
            base,
            offset,
            sizes,
            strides,
            dtype,
            mps,
            storage_bytes: if bytes == 0 { 0 } else { end },
            packed_view: false,
        };
        self.keep(handle, Some(tensor));
    }

    /// A blob over a device address: of an allocation, or a tensor's data pointer.
    pub(super) fn blob_of_device(&mut self, random: &mut Random) {
        let (pointer, storage) = if random.chance(2) && !self.allocations.is_empty() {
            let i = random.below(self.allocations.len() as u64) as usize;
            (self.allocations[i].pointer, self.allocations[i].storage.clone())
        } else {
            let Some(i) = self.some(random) else { return };
            let tensor = self.tensor(i);
            if tensor.storage.place != Place::Device || tensor.packed_view || tensor.numel() == 0 {
                return;
            }
            let start = tensor.offset as usize * tensor.dtype.size;
            let storage = tensor.storage.clone();
            (self.data_ptr(i).wrapping_byte_sub(start), storage)
        };
        let dtype = random.pick(&TYPES);
        let room = storage.bytes / dtype.size;
        if room == 0 {
            return;
        }
        let skip = random.below(room as u64) as usize;
        let offset = random.below((room - skip) as u64) as usize;
        let left = (room - skip - offset) as i64;
        let sizes = if random.chance(2) { vec![left] } else { vec![left.min(3), left / 3] };
        if model::extent(&sizes, &model::contiguous(&sizes)) > left {
            return;
        }
        let mut handle = null_mut();
        // SAFETY: the address lies in a live allocation.
        ok(unsafe {
            aoti_torch_create_tensor_from_blob(
                pointer.wrapping_byte_add(skip * dtype.size),
                sizes.len() as i64,
                sizes.as_ptr(),
                null(),
                offset as i64,
                dtype.code,
                13,
                0,
                &mut handle,
            )
        });
        let tensor = Tensor {
            base: 0,
            offset: (skip + offset) as i64,
            strides: model::contiguous(&sizes),
            sizes,
            dtype,
            mps: true,
            storage_bytes: storage.bytes,
            storage,
            packed_view: false,
        };
        self.keep(handle, Some(tensor));
    }

    pub(super) fn view(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let of = self.tensor(i).clone();
        let sizes = if random.chance(3) { of.sizes.clone() } else { Self::sizes(random) };
        let strides = Self::strides(random, &sizes);
        let room = (of.storage_bytes / of.dtype.size) as i64;
        let extent = model::extent(&sizes, &strides);
        let start = random.below((room - extent).max(0) as u64 + 1) as i64;
        self.make_view(i, &of, sizes, strides, start - of.offset, random.chance(40));
    }

    pub(super) fn make_view(
        &mut self,
        i: usize,
        of: &Tensor,
        sizes: Vec<i64>,
        strides: Vec<i64>,
        increment: i64,
        unaligned: bool,
    ) {
        let increment = if unaligned { increment - of.offset - 1 } else { increment };
        let offset = of.offset + increment;
        let extent = model::extent(&sizes, &strides);
        let end = (offset.max(0) + extent) as usize * of.dtype.size;
        let fits = offset >= 0 && (extent == 0 || end <= of.storage_bytes);
        let mut handle = null_mut();
        // SAFETY: arrays of the rank.
        let code = unsafe {
            aoti_torch__reinterpret_tensor(
                self.live[i].handle,
                sizes.len() as i64,
                sizes.as_ptr(),
                strides.as_ptr(),
                increment,
                &mut handle,
            )
        };
        if !fits {
            assert_eq!(code, 0x12, "a view of {sizes:?} {strides:?} at {offset} of {of:?}");
            assert!(handle.is_null());
            return;
        }
        ok(code);
        self.keep(handle, Some(self.view_of(of, sizes, strides, offset)));
    }

    pub(super) fn view_of(
        &self,
        of: &Tensor,
        sizes: Vec<i64>,
        strides: Vec<i64>,
        offset: i64,
    ) -> Tensor {
        let packed_view = of.mps && !self.strided && !packed(&sizes, &strides);
        Tensor { offset, sizes, strides, packed_view, ..of.clone() }
    }

    pub(super) fn as_strided(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let of = self.tensor(i).clone();
        let sizes: Vec<i64> = of.sizes.iter().map(|&n| random.below(n as u64 + 1) as i64).collect();
        let strides = match random.below(3) {
            0 => of.strides.clone(),
            _ => Self::strides(random, &sizes),
        };
        let extent = model::extent(&sizes, &strides);
        let end = (of.offset + extent) as usize * of.dtype.size;
        let mut handle = null_mut();
        // SAFETY: arrays of the rank.
        let code = unsafe {
            aoti_torch_as_strided(
                self.live[i].handle,
                sizes.as_ptr(),
                strides.as_ptr(),
                &mut handle,
            )
        };
        if extent > 0 && end > of.storage_bytes {
            assert_eq!(code, 0x12);
            return;
        }
        ok(code);
        self.keep(handle, Some(self.view_of(&of, sizes, strides, of.offset)));
    }

    #[allow(clippy::wrong_self_convention, reason = "named after the function it calls")]
    pub(super) fn from_pool(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let of = self.tensor(i).clone();
        let dtype = random.pick(&TYPES);
        let sizes = Self::sizes(random);
        let strides = if random.chance(3) {
            Self::strides(random, &sizes)
        } else {
            model::contiguous(&sizes)
        };
        let bytes = model::extent(&sizes, &strides) as usize * dtype.size;
        let room = of.storage_bytes.saturating_sub(bytes);
        let offset_bytes = random.below(room as u64 + 2) as i64;
        let mut handle = null_mut();
        // SAFETY: arrays of the rank.
        let code = unsafe {
            aoti_torch__alloc_from_pool(
                self.live[i].handle,
                offset_bytes,
                dtype.code,
                sizes.len() as i64,
                sizes.as_ptr(),
                strides.as_ptr(),
                &mut handle,
            )
        };
        let aligned = (offset_bytes as usize).is_multiple_of(dtype.size);
        if !aligned || (bytes > 0 && offset_bytes as usize + bytes > of.storage_bytes) {
            assert_eq!(code, 0x12);
            return;
        }
        ok(code);
        let offset = offset_bytes / dtype.size as i64;
        let tensor = Tensor { offset, sizes, strides, dtype, packed_view: false, ..of };
        self.keep(handle, Some(tensor));
    }

    pub(super) fn second_handle(&mut self, random: &mut Random) {
        if self.live.is_empty() || random.chance(6) {
            let mut handle = null_mut();
            // SAFETY: an output.
            ok(unsafe { aoti_torch_new_uninitialized_tensor(&mut handle) });
            return self.keep(handle, None);
        }
        let i = random.below(self.live.len() as u64) as usize;
        let mut handle = null_mut();
        // SAFETY: a live handle and an output.
        ok(unsafe {
            match random.below(2) {
                0 => aoti_torch_new_tensor_handle(self.live[i].handle, &mut handle),
                _ => aoti_torch_assign_tensors_out(self.live[i].handle, &mut handle),
            }
        });
        self.keep(handle, self.live[i].tensor.clone());
    }

    pub(super) fn clone_tensor(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let of = self.tensor(i).clone();
        let preserve = random.chance(2);
        let mut handle = null_mut();
        // SAFETY: a live handle and an output.
        ok(unsafe {
            match preserve {
                true => aoti_torch_clone_preserve_strides(self.live[i].handle, &mut handle),
                false => aoti_torch_clone(self.live[i].handle, &mut handle),
            }
        });
        let strides = match preserve {
            true => of.strides.clone(),
            false => {
                // PyTorch's preserve_format has cases; the library says which it took.
                let mut array = null_mut();
                // SAFETY: a live handle and an output.
                ok(unsafe { aoti_torch_get_strides(handle, &mut array) });
                // SAFETY: as many strides as dimensions.
                unsafe { std::slice::from_raw_parts(array, of.sizes.len()) }.to_vec()
            }
        };
        assert!(preserve || packed(&of.sizes, &strides), "a clone has gaps");
        let bytes = model::extent(&of.sizes, &strides) as usize * of.dtype.size;
        let tensor = Tensor {
            storage: Storage::new(bytes, if of.mps { Place::Device } else { Place::Host }),
            base: 0,
            offset: 0,
            strides,
            storage_bytes: bytes,
            packed_view: false,
            ..of.clone()
        };
        tensor.write(&of.read());
        self.keep(handle, Some(tensor));
    }

    pub(super) fn assign(&mut self, random: &mut Random) {
        if self.live.is_empty() {
            return;
        }
        let src = random.below(self.live.len() as u64) as usize;
        let dst = random.below(self.live.len() as u64) as usize;
        // SAFETY: live handles.
        ok(unsafe { aoti_torch_assign_tensors(self.live[src].handle, self.live[dst].handle) });
        self.live[dst].tensor = self.live[src].tensor.clone();
        self.check_attributes(dst);
    }
}
