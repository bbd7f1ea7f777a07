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

type Task<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// One parallel region, as the workers see it.
#[derive(Clone, Copy)]
struct Job {
    task: *const Task<'static>,
    tasks: usize,
    threads: usize,
}

struct Shared {
    /// The current job; written by `run` only while every worker is idle (`running == 0`).
    job: UnsafeCell<Option<Job>>,
    /// Raised once a job is published; workers run a job each time it changes.
    epoch: AtomicUsize,
    /// Next task index of the current job.
    next: AtomicUsize,
    /// Workers that have not finished the current job.
    running: AtomicUsize,
    stop: AtomicBool,
    /// The first panic of the current job.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Parked workers: worker `i` is parked, or about to park, while flag `i` is set.
    parked: Vec<AtomicBool>,
}

// SAFETY: `job` is written only by the one caller of `run` (it holds the pool's lock) while `running == 0`, and read
// by workers only after they saw the epoch change with Acquire, which the write precedes with Release.
unsafe impl Sync for Shared {}
// SAFETY: the raw pointer inside `job` is only followed between publication and the end of `run`, on any thread, and
// points to a `Sync` closure.
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
            epoch: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
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
        // SAFETY: the lifetime is erased only for the length of this call: `run` does not return (nor unwind) before
        // `running` is back at zero, after which no worker follows the pointer.
        let erased = unsafe { std::mem::transmute::<*const Task<'_>, *const Task<'static>>(task) };
        // SAFETY: `running == 0` here (held since the last `run`), so no worker reads `job`.
        unsafe { *shared.job.get() = Some(Job { task: erased, tasks, threads }) };
        shared.next.store(0, Ordering::Relaxed);
        shared.running.store(self.workers.len(), Ordering::Relaxed);
        // SeqCst against the worker's `parked` store: either we see it parked, or it sees the new epoch.
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        for (worker, parked) in self.threads.iter().zip(&shared.parked) {
            if parked.load(Ordering::SeqCst) {
                worker.unpark();
            }
        }
        shared.drain(task, tasks, 0);
        let mut spins = 0u32;
        while shared.running.load(Ordering::Acquire) != 0 {
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
        task: &(dyn Fn(usize, &mut [T], &mut [S]) + Sync),
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
        self.shared.epoch.fetch_add(1, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker never panics: it catches its tasks' panics.
            let _ = worker.join();
        }
    }
}

impl Shared {
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
        seen = wait(shared, worker, seen);
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        // SAFETY: the epoch changed, so `run` has published a job and waits for `running`.
        if let Some(job) = unsafe { *shared.job.get() }
            && worker + 1 < job.threads
        {
            // SAFETY: `run` keeps the closure alive until `running` is zero.
            shared.drain(unsafe { &*job.task }, job.tasks, worker + 1);
        }
        shared.running.fetch_sub(1, Ordering::Release);
    }
}

/// Waits for an epoch other than `seen`: spins for [`SPIN`], then parks.
fn wait(shared: &Shared, worker: usize, seen: usize) -> usize {
    let start = Instant::now();
    loop {
        for _ in 0..64 {
            let epoch = shared.epoch.load(Ordering::Acquire);
            if epoch != seen {
                return epoch;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > SPIN {
            shared.parked[worker].store(true, Ordering::SeqCst);
            while shared.epoch.load(Ordering::SeqCst) == seen {
                std::thread::park();
            }
            shared.parked[worker].store(false, Ordering::SeqCst);
        }
    }
}

/// Spins, and yields once the other threads have clearly been descheduled.
fn backoff(spins: &mut u32) {
    *spins += 1;
    if *spins > 20_000 {
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
