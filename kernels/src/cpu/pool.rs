//! A fork-join thread pool whose hand-off costs about a microsecond: workers spin briefly, then park.
//!
//! A decode step makes some two hundred parallel regions of tens of microseconds each; a general pool's wake-up
//! would cost as much as the work.

#![allow(unsafe_code, reason = "workers borrow the caller's closure for the length of one `run`")]

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long an idle worker spins before it parks. Longer than the gaps inside a decode step, shorter than a
/// scheduler quantum.
const SPIN: Duration = Duration::from_micros(200);

/// Spins of a caller that waits for the last tasks before it starts to yield: a few tens of microseconds.
const PATIENCE: u32 = 500;

type Task<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// What [`Pool::chunks_with_scratch`] calls: (chunk index, chunk, scratch of the thread).
pub type ScratchTask<'a, T, S> = dyn Fn(usize, &mut [T], &mut [S]) + Sync + 'a;

/// One parallel region, as the workers see it.
#[derive(Clone, Copy)]
struct Job {
    task: *const Task<'static>,
    tasks: usize,
    threads: usize,
}

/// `Shared::state` is one region's number times `EPOCH`, with `OPEN` set while workers may join it, plus how many have
/// joined and not yet left.
const EPOCH: usize = 1 << 16;
const OPEN: usize = 1 << 15;
const JOINED: usize = OPEN - 1;

struct Shared {
    /// The current job; written by `run` only while no worker has joined and none can.
    job: UnsafeCell<Option<Job>>,
    state: AtomicUsize,
    /// Next task index of the current job.
    next: AtomicUsize,
    stop: AtomicBool,
    /// The first panic of the current job.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Parked workers: worker `i` is parked, or about to park, while flag `i` is set.
    parked: Vec<AtomicBool>,
}

// SAFETY: `job` is written only by the one caller of `run` (it holds the pool's lock) while the state is closed and
// nobody has joined, and read by workers only after joining: the exchange that joins (Acquire) saw the open state, which
// was stored (Release) after the job.
unsafe impl Sync for Shared {}
// SAFETY: the raw pointer inside `job` is only followed between joining and leaving, on any thread, and points to a
// `Sync` closure.
unsafe impl Send for Shared {}

/// A fixed set of worker threads; the calling thread is one of them.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    threads: Vec<Thread>,
    busy: Mutex<()>,
}

impl Pool {
    /// A pool of `threads` threads in all, the caller included (at least one).
    pub fn new(threads: usize) -> Pool {
        let extra = threads.max(1) - 1;
        let shared = Arc::new(Shared {
            job: UnsafeCell::new(None),
            state: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            panic: Mutex::new(None),
            parked: (0..extra).map(|_| AtomicBool::new(false)).collect(),
        });
        // A machine that refuses threads gets a smaller pool, not an abort.
        let workers: Vec<_> = (0..extra)
            .map_while(|i| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new()
                    .name(format!("memra-{}", i + 1))
                    .spawn(move || work(&shared, i))
                    .ok()
            })
            .collect();
        let threads = workers.iter().map(|w| w.thread().clone()).collect();
        Pool { shared, workers, threads, busy: Mutex::new(()) }
    }

    /// Threads that a region can use, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `task(index, thread)` once for each `index < tasks`, on at most `threads` threads, and returns when all
    /// calls have. `thread` is below `threads` and no two concurrent calls share it. Tasks are handed out in order.
    ///
    /// Not reentrant: `task` must not call `run` on the same pool (it would deadlock); calls from several threads wait
    /// for each other.
    ///
    /// # Panics
    /// With a task's own panic, after every other task has returned.
    pub fn run(&self, threads: usize, tasks: usize, task: &Task<'_>) {
        let threads = threads.clamp(1, self.threads()).min(tasks);
        if threads <= 1 {
            (0..tasks).for_each(|index| task(index, 0));
            return;
        }
        let _busy = lock(&self.busy);
        let shared = &*self.shared;
        // SAFETY: the lifetime is erased only for the length of this call: `run` does not return (nor unwind) before the
        // state is closed and everyone has left, after which no worker follows the pointer.
        let erased = unsafe { std::mem::transmute::<*const Task<'_>, *const Task<'static>>(task) };
        // SAFETY: the state is closed and nobody has joined (held since the last `run`), so no worker reads `job`.
        unsafe { *shared.job.get() = Some(Job { task: erased, tasks, threads }) };
        shared.next.store(0, Ordering::Relaxed);
        // SeqCst against the worker's `parked` store: either we see it parked, or it sees the new state.
        shared.state.fetch_add(EPOCH | OPEN, Ordering::SeqCst);
        for (worker, parked) in self.threads.iter().zip(&shared.parked).take(threads - 1) {
            if parked.load(Ordering::SeqCst) {
                worker.unpark();
            }
        }
        shared.drain(task, tasks, 0);
        // A worker that comes late, descheduled by the system perhaps, finds the region closed: nobody waits for it.
        shared.state.fetch_and(!OPEN, Ordering::Relaxed);
        let mut spins = 0;
        while shared.state.load(Ordering::Acquire) & JOINED != 0 {
            backoff(&mut spins);
        }
        if let Some(panic) = lock(&shared.panic).take() {
            resume_unwind(panic);
        }
    }

    /// Splits `out` into chunks of `chunk` values (the last may be shorter) and calls `task(chunk index, chunk)` for
    /// each, on at most `threads` threads.
    pub fn chunks_mut<T: Send>(
        &self,
        threads: usize,
        out: &mut [T],
        chunk: usize,
        task: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        let (len, chunk) = (out.len(), chunk.max(1));
        let base = Base(out.as_mut_ptr());
        self.run(threads, len.div_ceil(chunk), &|index, _| {
            let start = index * chunk;
            // SAFETY: chunks of distinct indices do not overlap, lie within `out`, which is borrowed mutably for the
            // length of the call, and each index is handed out once.
            let part =
                unsafe { std::slice::from_raw_parts_mut(base.get().add(start), chunk.min(len - start)) };
            task(index, part);
        });
    }

    /// [`Pool::chunks_mut`] with `each` values of scratch of its own for every thread: `task(chunk index, chunk,
    /// scratch)`. Fewer threads run where `scratch` is too short for all.
    pub fn chunks_with_scratch<T: Send, S: Send>(
        &self,
        threads: usize,
        out: &mut [T],
        chunk: usize,
        scratch: &mut [S],
        each: usize,
        task: &ScratchTask<'_, T, S>,
    ) {
        let (len, chunk) = (out.len(), chunk.max(1));
        let threads = threads.min(scratch.len().checked_div(each).unwrap_or(threads)).max(1);
        let each = each.min(scratch.len() / threads);
        let (base, scratch) = (Base(out.as_mut_ptr()), Base(scratch.as_mut_ptr()));
        self.run(threads, len.div_ceil(chunk), &|index, thread| {
            let start = index * chunk;
            // SAFETY: as in `chunks_mut`.
            let part =
                unsafe { std::slice::from_raw_parts_mut(base.get().add(start), chunk.min(len - start)) };
            // SAFETY: `thread < threads`, so the part lies within `scratch`, which is borrowed mutably for the length of
            // the call, and no two concurrent tasks share a thread number.
            let own = unsafe { std::slice::from_raw_parts_mut(scratch.get().add(thread * each), each) };
            task(index, part, own);
        });
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.state.fetch_add(EPOCH, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker never panics: it catches its tasks' panics.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// Joins region `epoch` if it is still the current one and open.
    fn join(&self, epoch: usize) -> bool {
        let join = |state: usize| (state / EPOCH == epoch && state & OPEN != 0).then_some(state + 1);
        self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, join).is_ok()
    }

    /// Runs tasks until none is left; a panic is kept for the caller and stops the hand-out.
    fn drain(&self, task: &Task<'_>, tasks: usize, thread: usize) {
        let result = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let index = self.next.fetch_add(1, Ordering::Relaxed);
                if index >= tasks {
                    break;
                }
                task(index, thread);
            }
        }));
        if let Err(panic) = result {
            self.next.store(tasks, Ordering::Relaxed);
            lock(&self.panic).get_or_insert(panic);
        }
    }
}

fn work(shared: &Shared, worker: usize) {
    let mut seen = 0;
    loop {
        let state = wait(shared, worker, seen);
        seen = state / EPOCH;
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        if !shared.join(seen) {
            continue;
        }
        // SAFETY: joined, so `run` has published a job and waits for this worker to leave.
        if let Some(job) = unsafe { *shared.job.get() }
            && worker + 1 < job.threads
        {
            // SAFETY: `run` keeps the closure alive until this worker has left.
            shared.drain(unsafe { &*job.task }, job.tasks, worker + 1);
        }
        shared.state.fetch_sub(1, Ordering::Release);
    }
}

/// Waits for a region other than `seen` and returns the state: spins for [`SPIN`], then parks.
fn wait(shared: &Shared, worker: usize, seen: usize) -> usize {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            let state = shared.state.load(Ordering::Acquire);
            if state / EPOCH != seen {
                return state;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > SPIN {
            shared.parked[worker].store(true, Ordering::SeqCst);
            while shared.state.load(Ordering::SeqCst) / EPOCH == seen {
                std::thread::park();
            }
            shared.parked[worker].store(false, Ordering::SeqCst);
        }
    }
}

/// Spins, and yields once the other threads have clearly been descheduled.
fn backoff(spins: &mut u32) {
    *spins += 1;
    if *spins > PATIENCE {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A base pointer that may cross threads; the user of it upholds disjointness.
struct Base<T>(*mut T);

impl<T> Base<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

// SAFETY: only used to form disjoint `&mut` parts of a slice whose elements are `Send`.
unsafe impl<T: Send> Sync for Base<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_task_runs_once_on_any_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads);
            for tasks in [0, 1, 2, 7, 100] {
                let counts: Vec<AtomicU64> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
                pool.run(threads, tasks, &|i, t| {
                    assert!(t < threads);
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn chunks_are_disjoint_and_cover_the_slice() {
        let pool = Pool::new(4);
        let mut out = vec![0usize; 103];
        pool.chunks_mut(4, &mut out, 10, &|index, part| {
            part.iter_mut().enumerate().for_each(|(i, v)| *v += index * 10 + i);
        });
        assert!(out.iter().enumerate().all(|(i, v)| *v == i));
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(3);
        let run = || pool.run(3, 50, &|i, _| assert!(i != 17, "planted"));
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        let sum = AtomicU64::new(0);
        pool.run(3, 10, &|i, _| {
            sum.fetch_add(i as u64, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 45);
    }

    #[test]
    fn many_short_regions_on_more_threads_than_cores_lose_no_task() {
        let pool = Pool::new(6);
        let mut out = [0u32; 3];
        for _ in 0..5_000 {
            pool.chunks_mut(6, &mut out, 1, &|index, part| part[0] += 1 + index as u32);
        }
        assert_eq!(out, [5_000, 10_000, 15_000]);
    }

    #[test]
    fn scratch_is_never_shared() {
        let pool = Pool::new(3);
        let (mut out, mut scratch) = ([0u32; 50], [0u32; 30]);
        pool.chunks_with_scratch(3, &mut out, 2, &mut scratch, 10, &|index, part, own| {
            assert_eq!(own.len(), 10);
            own.fill(index as u32);
            std::thread::yield_now();
            part.fill(own.iter().sum());
        });
        assert!(out.iter().enumerate().all(|(i, v)| *v == 10 * (i as u32 / 2)));
    }

    #[test]
    fn workers_wake_after_they_have_parked() {
        let pool = Pool::new(2);
        for _ in 0..3 {
            std::thread::sleep(SPIN * 5);
            let hits = AtomicU64::new(0);
            pool.run(2, 64, &|_, _| {
                hits.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(hits.into_inner(), 64);
        }
    }
}
