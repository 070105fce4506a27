//! The thread that does the file work of nonblocking calls.

use crate::activity::current_owner;
use crate::process::Process;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll};

type Job = Box<dyn FnOnce() + Send>;

/// One thread of a process, made when it is first needed; its work is done in the order in which it was given. It ends with
/// the process.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
}

impl Worker {
    fn submit(&self, job: Job) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.is_none() {
            let (sender, receiver) = mpsc::channel::<Job>();
            let thread = std::thread::Builder::new().name("parnass-io".to_owned());
            let run = move || {
                parnass_base::process::block_signals();
                receiver.into_iter().for_each(|job| job());
            };
            if thread.spawn(run).is_ok() {
                *jobs = Some(sender);
            }
        }
        let refused = match &*jobs {
            Some(sender) => sender.send(job).err().map(|refused| refused.0),
            None => Some(job),
        };
        drop(jobs);
        // Without a thread the call that starts the operation does the work.
        if let Some(job) = refused {
            job();
        }
    }
}

/// The result of work, once it is there.
struct Awaited<T>(Arc<Mutex<Option<T>>>);

impl<T> Future for Awaited<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<T> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(value) => Poll::Ready(value),
            None => Poll::Pending,
        }
    }
}

/// Does `work`: on the helper thread if it is in the `background`, for the activity that awaits it; else at once.
pub(super) async fn perform<T: Send + 'static>(
    process: &Arc<Process>,
    background: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let Some(owner) = current_owner().filter(|_| background) else { return work() };
    let place = Arc::new(Mutex::new(None));
    let (result, awake) = (Arc::clone(&place), Arc::clone(process));
    process.files.worker.submit(Box::new(move || {
        let value = work();
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        awake.advance_soon(owner);
    }));
    Awaited(place).await
}
