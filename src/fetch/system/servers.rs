//! One step of a retrieval over http: the disk, the pace of archives, the connection.

use std::sync::Arc;

use super::wire::Wire;
use crate::error::Error;
use crate::fetch::exchange::{Answer, Asked, Disk, Source, Whose};
use crate::fetch::failed::Failed;
use crate::fetch::gate::IsStopped;
use crate::fetch::names::Names;
use crate::fetch::pace::Pace;
use crate::fetch::tap::Recorder;
use crate::policy::Policy;

pub(crate) struct Servers {
    pub(crate) disk: Option<Box<dyn Disk>>,
    pub(crate) pace: Pace,
    pub(crate) is_stopped: IsStopped,
    pub(super) wire: Wire,
}

impl Servers {
    pub(crate) fn new(
        policy: &Arc<Policy>,
        names: Arc<dyn Names>,
        recorder: Option<Arc<dyn Recorder>>,
    ) -> Result<Self, Error> {
        Ok(Self {
            disk: None,
            pace: Pace::default(),
            is_stopped: Arc::new(|| false),
            wire: Wire::new(Arc::clone(policy), names, recorder)?,
        })
    }

    pub(crate) fn exchange(&self, asked: &Asked<'_>) -> Result<Answer, Failed> {
        let Some(disk) = &self.disk else {
            return self.ask(asked);
        };
        let mut answer = disk.answer(asked, &|asked| self.ask(asked))?;
        if let (Some(recorder), Source::Kept { .. }) = (&self.wire.recorder, &answer.source) {
            answer.recorded = recorder.kept(asked, &answer);
        }
        Ok(answer)
    }

    fn ask(&self, asked: &Asked<'_>) -> Result<Answer, Failed> {
        if asked.whose != Whose::Source {
            self.pace
                .turn(asked.whose, asked.allowance, &*self.is_stopped)?;
            // The time-out begins with the turn.
            let timeout = self.wire.policy.limits.timeout;
            let given = self.wire.exchange(&Asked {
                allowance: asked.allowance.at_most(timeout),
                ..*asked
            });
            self.pace.heed(&given);
            return given;
        }
        self.wire.exchange(asked)
    }
}
