//! Handles that go, and what is compared.

use super::*;

impl Machine {
    // Handles that go.

    pub(super) fn delete(&mut self, random: &mut Random) {
        if self.live.is_empty() {
            return;
        }
        let i = random.below(self.live.len() as u64) as usize;
        self.delete_at(i);
    }

    pub(super) fn delete_at(&mut self, i: usize) {
        let live = self.live.swap_remove(i);
        // SAFETY: a live handle.
        ok(unsafe { aoti_torch_delete_tensor_object(live.handle) });
        self.dead.push(live.handle);
        if self.dead.len() > 64 {
            self.dead.remove(0);
        }
        if live.tensor.is_some_and(|t| t.storage.place == Place::Borrowed)
            && !self
                .live
                .iter()
                .any(|l| l.tensor.as_ref().is_some_and(|t| t.storage.place == Place::Borrowed))
        {
            // The last handle to the caller's memory has gone: all of it is there.
            self.compare_arena();
        }
    }

    pub(super) fn delete_again(&mut self, random: &mut Random) {
        if self.dead.is_empty() {
            return;
        }
        let dead = random.pick(&self.dead);
        hostile::refuses_handle(dead);
    }

    pub(super) fn nonsense(&mut self, random: &mut Random) {
        let live = self.some(random).map(|i| self.live[i].handle);
        let library = self.library.as_ref().map(|l| (l.handle, l.function));
        hostile::nonsense(random, live, library, &self.dead_functions);
    }

    pub(super) fn delete_everything(&mut self, random: &mut Random) {
        for i in 0..self.live.len() {
            if self.live[i].tensor.is_some() && random.chance(3) {
                self.check(i);
            }
        }
        self.check_counts();
        while !self.live.is_empty() {
            self.delete(random);
        }
        while !self.allocations.is_empty() {
            let i = random.below(self.allocations.len() as u64) as usize;
            // SAFETY: an allocation that is freed once.
            ok(unsafe { aoti_torch_mps_free(self.allocations.swap_remove(i).pointer) });
        }
        self.end_library(random);
        self.compare_arena();
        let after = stats();
        assert_eq!(after.live_handles, 0);
        assert_eq!(
            (after.live_storages, after.live_device_bytes, after.live_host_bytes),
            (0, 0, 0),
            "live storages, device bytes and host bytes after all handles were deleted"
        );
        if random.chance(2) {
            ok(aoti_wgpu_trim().cast_signed());
            assert_eq!(stats().pooled_bytes, 0);
        }
    }

    // Checks.

    pub(super) fn check_values(&mut self, random: &mut Random) {
        if let Some(i) = self.some(random) {
            self.check(i);
        }
    }

    /// The elements as a copy to the host shows them.
    pub(super) fn check(&self, i: usize) {
        let tensor = self.tensor(i);
        let wanted = tensor.read();
        let mut found = vec![0xcc; wanted.bytes.len()];
        let blob = host_blob(&mut found, &tensor.sizes, tensor.dtype);
        // SAFETY: live handles.
        unsafe {
            ok(aoti_torch_copy_(blob, self.live[i].handle, 0));
            ok(aoti_torch_delete_tensor_object(blob));
        }
        compare(&found, &wanted, || format!("{tensor:?}"));
    }

    /// The elements as the data pointer shows them.
    pub(super) fn check_pointer(&mut self, random: &mut Random) {
        let packed: Vec<usize> = (0..self.live.len())
            .filter(|&i| self.live[i].tensor.as_ref().is_some_and(|t| t.packed_view))
            .collect();
        let i = match self.some(random) {
            _ if !packed.is_empty() && !random.chance(3) => random.pick(&packed),
            Some(i) => i,
            None => return,
        };
        let tensor = self.tensor(i).clone();
        let pointer = self.data_ptr(i);
        if tensor.storage.place == Place::Borrowed && !tensor.packed_view && tensor.numel() > 0 {
            let start = self.arena_pointer().wrapping_add(tensor.range().start);
            assert_eq!(pointer.cast(), start, "a blob's pointer is the caller's");
        }
        let wanted = tensor.read();
        if tensor.numel() == 0 {
            return;
        }
        let dense = tensor.packed_view || tensor.strides == model::contiguous(&tensor.sizes);
        if self.host_reaches(&tensor) && dense {
            if !tensor.packed_view {
                ok(aoti_wgpu_synchronize().cast_signed());
            }
            // SAFETY: as many bytes as the elements have, which no work writes.
            let found = unsafe { std::slice::from_raw_parts(pointer.cast(), wanted.bytes.len()) };
            compare(found, &wanted, || format!("through the pointer: {tensor:?}"));
        } else if dense && tensor.storage.place == Place::Device {
            let mut handle = null_mut();
            let rank = tensor.sizes.len() as i64;
            // SAFETY: an address in a live allocation.
            ok(unsafe {
                aoti_torch_create_tensor_from_blob(
                    pointer,
                    rank,
                    tensor.sizes.as_ptr(),
                    null(),
                    0,
                    tensor.dtype.code,
                    13,
                    0,
                    &mut handle,
                )
            });
            let mut found = vec![0xcc; wanted.bytes.len()];
            let blob = host_blob(&mut found, &tensor.sizes, tensor.dtype);
            // SAFETY: live handles.
            unsafe {
                ok(aoti_torch_copy_(blob, handle, 0));
                ok(aoti_torch_delete_tensor_object(blob));
                ok(aoti_torch_delete_tensor_object(handle));
            }
            compare(&found, &wanted, || format!("a blob over the pointer: {tensor:?}"));
        }
    }

    pub(super) fn check_attributes(&self, i: usize) {
        let handle = self.live[i].handle;
        let mut defined = false;
        // SAFETY: a live handle and an output.
        ok(unsafe { aoti_torch_is_defined(handle, &mut defined) });
        let Some(tensor) = &self.live[i].tensor else {
            assert!(!defined);
            return;
        };
        assert!(defined);
        let (mut sizes, mut strides) = (null_mut(), null_mut());
        let (mut rank, mut numel, mut offset, mut storage) = (0, 0, 0, 0);
        let (mut dtype, mut device, mut dense) = (0, 0, false);
        // SAFETY: a live handle and outputs.
        unsafe {
            ok(aoti_torch_get_sizes(handle, &mut sizes));
            ok(aoti_torch_get_strides(handle, &mut strides));
            ok(aoti_torch_get_dim(handle, &mut rank));
            ok(aoti_torch_get_numel(handle, &mut numel));
            ok(aoti_torch_get_storage_offset(handle, &mut offset));
            ok(aoti_torch_get_storage_size(handle, &mut storage));
            ok(aoti_torch_get_dtype(handle, &mut dtype));
            ok(aoti_torch_get_device_type(handle, &mut device));
            ok(aoti_torch_is_contiguous(handle, &mut dense));
        }
        assert!(!sizes.is_null() && !strides.is_null());
        // SAFETY: as many entries as dimensions.
        let found = unsafe {
            (
                std::slice::from_raw_parts(sizes, rank as usize).to_vec(),
                std::slice::from_raw_parts(strides, rank as usize).to_vec(),
            )
        };
        assert_eq!(numel, tensor.numel());
        assert_eq!((dtype, device == 13), (tensor.dtype.code, tensor.mps));
        assert_eq!(found.0, tensor.sizes);
        if tensor.packed_view {
            let bytes = tensor.numel() * tensor.dtype.size as i64;
            assert_eq!(found.1, model::contiguous(&tensor.sizes));
            assert_eq!((offset, storage, dense), (0, bytes, true));
        } else {
            assert_eq!(found.1, tensor.strides);
            assert_eq!((offset, storage), (tensor.offset, tensor.storage_bytes as i64));
        }
    }

    pub(super) fn check_counts(&self) {
        let stats = stats();
        assert_eq!(stats.live_handles, self.live.len() as u64);
        let mut seen: Vec<*const Storage> = Vec::new();
        let mut least = 0;
        let tensors = self.live.iter().filter_map(|l| l.tensor.as_ref()).map(|t| &t.storage);
        for storage in tensors.chain(self.allocations.iter().map(|a| &a.storage)) {
            if storage.place == Place::Device && !seen.contains(&Rc::as_ptr(storage)) {
                seen.push(Rc::as_ptr(storage));
                least += storage.bytes as u64;
            }
        }
        assert!(stats.live_device_bytes >= least, "{} < {least}", stats.live_device_bytes);
    }

    pub(super) fn check_arena(&self) {
        let memory = self.arena_storage.memory.borrow();
        compare(bytemuck::cast_slice(&self.arena[..]), &memory, || "the arena".into());
    }

    /// As [`Machine::check_arena`], when no handle to it is left: without a wait.
    pub(super) fn compare_arena(&self) {
        self.check_arena();
    }
}
