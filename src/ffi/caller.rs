//! Which code called an export: its return address, noted before the body runs.
//!
//! A return address can be had only where a function begins, so an export that needs it
//! begins with a few instructions that hand it to [`note`] and then jump to the body with
//! every argument as it came. Exports defined through [`noted!`] do that.

use std::cell::Cell;

thread_local! {
    // Without a destructor: programs call from destructors of thread-local objects.
    static CALLER: Cell<usize> = const { Cell::new(0) };
}

/// Keeps the address for [`take`]. Called from the first instructions of an export.
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) extern "C" fn note(return_address: usize) {
    CALLER.set(return_address);
}

/// The caller of the export that runs on this thread; 0 where it is not known or was taken.
#[inline]
pub(super) fn take() -> usize {
    CALLER.replace(0)
}

/// Defines an export whose body may ask [`take`] for its caller.
macro_rules! noted {
    (
        $(#[doc = $doc:literal])+
        pub unsafe extern "C" $($rest:tt)*
    ) => {
        $crate::ffi::caller::noted!(@define [unsafe] $(#[doc = $doc])+ $($rest)*);
    };
    (
        $(#[doc = $doc:literal])+
        pub extern "C" $($rest:tt)*
    ) => {
        $crate::ffi::caller::noted!(@define [] $(#[doc = $doc])+ $($rest)*);
    };
    (
        @define [$($unsafe:ident)?] $(#[doc = $doc:literal])+
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty
        $body:block
    ) => {
        #[allow(non_snake_case)]
        mod $name {
            use super::*;
            pub(super) $($unsafe)? extern "C" fn body($($argument: $type),*) -> $result $body
        }

        $(#[doc = $doc])+
        #[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub $($unsafe)? extern "C" fn $name($($argument: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
                // The stack is aligned to 16 bytes again for the call.
                "sub rsp, 24",
                "movsd [rsp], xmm0", "movsd [rsp + 8], xmm1",
                "mov rdi, [rsp + 72]",
                "call {note}",
                "movsd xmm0, [rsp]", "movsd xmm1, [rsp + 8]",
                "add rsp, 24",
                "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp {body}",
                note = sym $crate::ffi::caller::note,
                body = sym $name::body,
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!(
                "stp x29, x30, [sp, #-96]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]",
                "stp d0, d1, [sp, #80]",
                "mov x0, x30",
                "bl {note}",
                "ldp d0, d1, [sp, #80]",
                "ldp x6, x7, [sp, #64]", "ldp x4, x5, [sp, #48]",
                "ldp x2, x3, [sp, #32]", "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #96",
                "b {body}",
                note = sym $crate::ffi::caller::note,
                body = sym $name::body,
            );
        }

        $(#[doc = $doc])+
        #[cfg(not(all(unix, any(target_arch = "x86_64", target_arch = "aarch64"))))]
        #[unsafe(no_mangle)]
        pub $($unsafe)? extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the header's contract, which is the same.
            #[allow(unused_unsafe)]
            unsafe { $name::body($($argument),*) }
        }
    };
}
pub(super) use noted;
