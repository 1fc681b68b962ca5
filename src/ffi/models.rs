//! What models leave behind, and when it may go.
//!
//! ExecuTorch's delegate destroys a model by `dlclose`, removal of the program's file and
//! [`cleanup_memory`](super::memory::cleanup_memory); it never deletes the model's container,
//! so that its constants and what else it holds stay behind. The call does not say which
//! model went. What is known instead:
//!
//! - *Who made what.* Exports that make a tensor or an allocation note their caller
//!   ([`super::caller`]); one that lies in a program, a loaded object that defines
//!   AOTInductor's entry points, owns what was made. What the host itself makes is nobody's
//!   here and is never touched.
//! - *How many came.* A program asks for its device's code once while it is loaded, for its
//!   cached constants, and once each time a container is constructed, from different places in
//!   its code; and a container with constants makes one allocation. The calls from the busiest
//!   place, or the allocations if these are more, are the models that came. (A call whose
//!   result is the argument of the tensor made next does not count: that is a run.) Loading a
//!   path again whose object is still mapped (`dlclose` does not unmap an object with unique
//!   symbols) runs no initialisers but constructs a container, and counts.
//! - *How many went.* Each `cleanup_memory` is one, up to as many as came.
//!
//! Two rules follow, and both free only what no live model can use:
//!
//! 1. When as many have gone as came, everything that programs own goes.
//! 2. Before that, a model that went has no file any more. When as many have gone as came of
//!    the programs without a file, all of those have gone, and what they own goes. So a model
//!    that lives long does not keep what others leave beside it, however often they come.
//!
//! In between at most the containers of rule 2's programs that came since are held; they are
//! live handles and storages in the statistics. Shader libraries stay: programs keep them in
//! static variables, which a program that is loaded again finds as they were.

use super::{caller, handle, slab};
use crate::error::Result;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// The host: the owner of what no program made.
const HOST: u32 = 0;

/// One program as long as the process knows it.
struct Program {
    object: Object,
    /// Calls for the device's code since the last release, by return address.
    asked: FxHashMap<usize, u64>,
    /// Whether it made anything since the last release.
    present: bool,
}

impl Program {
    /// Models that came and of which none is known to have gone.
    fn came(&self, allocations: u64) -> u64 {
        let asked = self.asked.values().copied().max().unwrap_or(0);
        asked.max(allocations).max(u64::from(self.present))
    }
}

/// A loaded object as `dladdr` names it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Object {
    base: usize,
    path: std::ffi::CString,
}

#[derive(Default)]
struct Ledger {
    /// A program's number is its place here, plus one.
    programs: Vec<Program>,
    /// Device memory that programs hold by address.
    allocations: FxHashMap<usize, u32>,
    gone: u64,
}

static LEDGER: Mutex<Option<Ledger>> = Mutex::new(None);

impl Ledger {
    /// The newest program at that object: an unmapped one may have had the same place.
    fn program_of(&self, object: &Object) -> Option<u32> {
        let at = self.programs.iter().rposition(|program| program.object == *object)?;
        u32::try_from(at + 1).ok()
    }

    /// The number of the program at that object, which is there now.
    fn arrive(&mut self, object: Object) -> u32 {
        let number = self.program_of(&object).unwrap_or_else(|| {
            // Another object's places in the code may have been these before.
            known::forget_all();
            self.programs.push(Program { object, asked: FxHashMap::default(), present: false });
            self.programs.len() as u32
        });
        if let Some(program) = self.program(number) {
            program.present = true;
        }
        number
    }

    fn program(&mut self, number: u32) -> Option<&mut Program> {
        self.programs.get_mut((number as usize).checked_sub(1)?)
    }

    /// Notes that a model went, and gives the programs of which none is left.
    fn one_gone(&mut self, file_exists: impl Fn(&Object) -> bool) -> Vec<u32> {
        let came = |programs: &[(u32, u64)]| programs.iter().map(|(_, came)| came).sum::<u64>();
        let mut gone_ones: Vec<(u32, u64)> = (1..)
            .zip(&self.programs)
            .map(|(number, program)| {
                let held = self.allocations.values().filter(|&&owner| owner == number).count();
                (number, program.came(held as u64))
            })
            .filter(|&(_, came)| came > 0)
            .collect();
        let all = came(&gone_ones);
        self.gone = (self.gone + 1).min(all);
        if self.gone < all {
            gone_ones.retain(|&(number, _)| {
                self.program(number).is_some_and(|program| !file_exists(&program.object))
            });
            if self.gone < came(&gone_ones) {
                return Vec::new();
            }
        }
        self.gone = self.gone.saturating_sub(came(&gone_ones));
        for &(number, _) in &gone_ones {
            if let Some(program) = self.program(number) {
                program.asked.clear();
                program.present = false;
            }
        }
        gone_ones.into_iter().map(|(number, _)| number).collect()
    }
}

thread_local! {
    /// The program and the place of this thread's last call, where that was for the code of
    /// the device. Without a destructor, as in `caller`.
    static LAST_ASKED: Cell<(u32, usize)> = const { Cell::new((HOST, 0)) };
}

/// Notes a call for the device's code: a program that is loaded, or a container of it.
pub(super) fn asked_for_device() {
    let address = caller::take();
    let owner = owner_at(address);
    LAST_ASKED.set((owner, address));
    if owner != HOST {
        count(owner, address, 1);
    }
}

fn count(owner: u32, address: usize, change: i64) {
    let mut ledger = LEDGER.lock();
    if let Some(program) = ledger.as_mut().and_then(|ledger| ledger.program(owner)) {
        let asked = program.asked.entry(address).or_default();
        *asked = asked.saturating_add_signed(change);
    }
}

/// The owner of the tensor that the export which runs on this thread makes.
#[inline]
pub(super) fn owner_of_tensor() -> u32 {
    let owner = owner_at(caller::take());
    let (asked, address) = LAST_ASKED.replace((HOST, 0));
    if asked != HOST && asked == owner {
        count(owner, address, -1);
    }
    owner
}

#[inline]
fn owner_at(address: usize) -> u32 {
    match address {
        0 => HOST,
        _ => known::owner(address).unwrap_or_else(|| find_owner(address)),
    }
}

/// Asks the loader, and keeps what it answers.
#[cold]
fn find_owner(address: usize) -> u32 {
    let owner = loaded::object_at(address).map_or(HOST, |object| {
        // The loader is asked while no lock of ours is held: its own may be held by a thread
        // that runs a program's initialisers, and so comes here.
        let known = LEDGER.lock().as_ref().and_then(|ledger| ledger.program_of(&object));
        if known.is_none() && !loaded::is_program(&object) {
            return HOST;
        }
        LEDGER.lock().get_or_insert_default().arrive(object)
    });
    known::set(address, owner);
    owner
}

/// Notes who holds a new allocation.
pub(super) fn allocated(address: usize) {
    LAST_ASKED.set((HOST, 0));
    let owner = owner_at(caller::take());
    if owner != HOST && address != 0 {
        LEDGER.lock().get_or_insert_default().allocations.insert(address, owner);
    }
}

/// Notes that an allocation was given back.
pub(super) fn freed(address: usize) {
    if let Some(ledger) = &mut *LEDGER.lock() {
        ledger.allocations.remove(&address);
    }
}

/// Notes that a model went, and frees what is left of those of which none lives.
///
/// # Errors
/// None that is due to the caller; what can go goes.
pub(super) fn one_gone() -> Result<()> {
    // The object that went may have been unmapped, and its place be used by another.
    known::forget_all();
    let (programs, allocations) = {
        let mut ledger = LEDGER.lock();
        let Some(ledger) = &mut *ledger else { return Ok(()) };
        let programs = ledger.one_gone(loaded::file_exists);
        let mut allocations = Vec::new();
        ledger.allocations.retain(|&address, owner| {
            let goes = programs.contains(owner);
            if goes {
                allocations.push(address);
            }
            !goes
        });
        (programs, allocations)
    };
    if programs.is_empty() {
        return Ok(());
    }
    let mut handles = Vec::new();
    slab::for_each(|slot| {
        if slot.is_handle() && programs.contains(&slot.owner()) {
            handles.push(std::ptr::from_ref(slot).cast_mut().cast());
        }
    });
    log::debug!(
        "{} handles and {} allocations of models that went",
        handles.len(),
        allocations.len()
    );
    let mut result = Ok(());
    for handle in handles {
        result = result.and(handle::remove("tensor", handle));
    }
    for address in allocations {
        result = result.and(Runtime::global().free(address));
    }
    result
}

/// Owners by return address, for each thread: a look-up without a lock or the loader.
mod known {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    const PLACES: usize = 64;

    /// Changes whenever what threads remember may be wrong.
    static GENERATION: AtomicU64 = AtomicU64::new(1);

    struct Cache {
        generation: Cell<u64>,
        places: [Cell<(usize, u32)>; PLACES],
    }

    thread_local! {
        // Without a destructor, as in `caller`.
        static CACHE: Cache = const {
            Cache { generation: Cell::new(0), places: [const { Cell::new((0, 0)) }; PLACES] }
        };
    }

    fn place(cache: &Cache, address: usize) -> Option<&Cell<(usize, u32)>> {
        let generation = GENERATION.load(Ordering::Acquire);
        if cache.generation.replace(generation) != generation {
            cache.places.iter().for_each(|place| place.set((0, 0)));
        }
        cache.places.get((address ^ (address >> 6)) % PLACES)
    }

    #[inline]
    pub(super) fn owner(address: usize) -> Option<u32> {
        CACHE.with(|cache| {
            let (at, owner) = place(cache, address)?.get();
            (at == address).then_some(owner)
        })
    }

    pub(super) fn set(address: usize, owner: u32) {
        CACHE.with(|cache| {
            if let Some(place) = place(cache, address) {
                place.set((address, owner));
            }
        });
    }

    pub(super) fn forget_all() {
        GENERATION.fetch_add(1, Ordering::AcqRel);
    }
}

/// What the loader knows.
#[cfg(unix)]
mod loaded {
    use super::Object;
    use std::ffi::{CStr, OsStr, c_void};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    /// The object that holds an address.
    pub(super) fn object_at(address: usize) -> Option<Object> {
        // SAFETY: zeroes are a valid value of the struct; the function takes any address
        // and fills the struct where it answers something but 0.
        let info = unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(address as *const c_void, &mut info) == 0 {
                return None;
            }
            info
        };
        if info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: a C string that lives as long as the object, which is loaded: its code
        // is calling.
        let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_owned();
        Some(Object { base: info.dli_fbase.addr(), path })
    }

    /// Whether the object is a compiled program: it defines AOTInductor's entry points, and
    /// holds neither the host's `main` nor this library.
    pub(super) fn is_program(object: &Object) -> bool {
        if object_at(object_at as *const () as usize).is_none_or(|own| own.base == object.base)
            || object.base == main_program()
        {
            return false;
        }
        // SAFETY: a C string; nothing is loaded that is not loaded already.
        let handle =
            unsafe { libc::dlopen(object.path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return false;
        }
        // SAFETY: a handle that is open, and a C string; the handle is closed once.
        let symbol = unsafe {
            let symbol = libc::dlsym(handle, c"AOTInductorModelContainerCreateWithDevice".as_ptr());
            libc::dlclose(handle);
            symbol
        };
        !symbol.is_null() && object_at(symbol.addr()).is_some_and(|found| found.base == object.base)
    }

    /// The base of the executable, where that is known; 0 elsewhere.
    fn main_program() -> usize {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        // SAFETY: reads a number of the process.
        let inside = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let inside = 0;
        object_at(inside).map_or(0, |object| object.base)
    }

    /// Whether the object's file is still there; yes, where that cannot be known.
    pub(super) fn file_exists(object: &Object) -> bool {
        Path::new(OsStr::from_bytes(object.path.to_bytes())).try_exists().unwrap_or(true)
    }
}

/// Elsewhere callers are not known, so that everything is the host's.
#[cfg(not(unix))]
mod loaded {
    use super::Object;

    pub(super) fn object_at(_: usize) -> Option<Object> {
        None
    }

    pub(super) fn is_program(_: &Object) -> bool {
        false
    }

    pub(super) fn file_exists(_: &Object) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIALISER: usize = 1;
    const CONSTRUCTOR: usize = 2;

    /// A ledger of programs of which so many containers were made, on one load each.
    fn ledger(containers: &[u64]) -> Ledger {
        let mut ledger = Ledger::default();
        for (base, &containers) in containers.iter().enumerate() {
            let object = Object { base, path: std::ffi::CString::default() };
            let mut asked = FxHashMap::default();
            asked.insert(INITIALISER, 1);
            asked.insert(CONSTRUCTOR, containers);
            ledger.programs.push(Program { object, asked, present: true });
        }
        ledger
    }

    fn come(ledger: &mut Ledger, number: u32) {
        *ledger.program(number).unwrap().asked.entry(CONSTRUCTOR).or_default() += 1;
    }

    const ALL_FILES: fn(&Object) -> bool = |_| true;

    #[test]
    fn everything_goes_with_the_last() {
        let mut ledger = ledger(&[1, 2]);
        assert!(ledger.one_gone(ALL_FILES).is_empty());
        assert!(ledger.one_gone(ALL_FILES).is_empty());
        assert_eq!(ledger.one_gone(ALL_FILES), [1, 2]);
        assert!(ledger.one_gone(ALL_FILES).is_empty());
        come(&mut ledger, 1);
        assert_eq!(ledger.one_gone(ALL_FILES), [1]);
    }

    #[test]
    fn a_program_without_a_file_goes_beside_one_with_one() {
        let mut ledger = ledger(&[1, 1]);
        let first_only: fn(&Object) -> bool = |object| object.base == 0;
        for _ in 0..12 {
            assert_eq!(ledger.one_gone(first_only), [2]);
            come(&mut ledger, 2);
        }
        assert_eq!(ledger.one_gone(first_only), [2]);
        assert_eq!(ledger.one_gone(ALL_FILES), [1]);
    }

    #[test]
    fn two_models_of_a_program_go_together() {
        let mut ledger = ledger(&[1, 2]);
        let first_only: fn(&Object) -> bool = |object| object.base == 0;
        assert!(ledger.one_gone(first_only).is_empty());
        assert_eq!(ledger.one_gone(first_only), [2]);
    }

    #[test]
    fn nothing_goes_while_it_is_unclear_which_went() {
        // Both files are gone, one model went.
        let mut ledger = ledger(&[1, 1]);
        assert!(ledger.one_gone(|_| false).is_empty());
        assert_eq!(ledger.one_gone(|_| false), [1, 2]);
    }

    #[test]
    fn a_cleanup_without_models_counts_for_nothing() {
        let mut ledger = ledger(&[]);
        assert!(ledger.one_gone(ALL_FILES).is_empty());
        assert_eq!(ledger.gone, 0);
    }

    #[test]
    fn this_test_is_no_program() {
        let own = loaded::object_at(this_test_is_no_program as *const () as usize);
        assert!(own.is_none_or(|own| !loaded::is_program(&own)));
    }
}
