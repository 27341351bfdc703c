//! The answers for files on a server. If the server returned a web page in place of the file, the resolver program is used
//! next, if the user configured one.

use super::Session;
use crate::engine::content_source::ContentSource;
use crate::engine::forms::hosted::response::{judge_page, judged};
use crate::engine::needs::Found;
use crate::engine::plan::{PlanItem, PlanStep, question};
use crate::engine::report::Refusal;
use crate::engine::{Content, Need};

impl Session<'_> {
    /// Whether the content may itself contain references. They are followed in another pass.
    pub(in crate::engine) fn may_refer(&self, obtained: &ContentSource) -> bool {
        self.settings.prefilter.notes(obtained.content.bytes())
    }

    pub(in crate::engine) fn resolve(&mut self, items: &[&PlanItem<'_>]) {
        let policy = self.policy();
        if policy.resolver.is_empty() {
            return;
        }
        let questions: Vec<Need> = items
            .iter()
            .filter(|item| self.settled(item).is_err())
            .filter_map(|item| question(policy, &item.body))
            .collect();
        self.ask(questions);
    }

    fn settled(&self, item: &PlanItem<'_>) -> Result<(), Refusal> {
        let PlanStep::Retrieve(need) = &item.step else {
            return Ok(());
        };
        match self.retrieved.get(need) {
            Some(Err(refusal)) => Err(refusal.clone()),
            Some(Ok(Some(answer))) if item.body.linked.is_some() => judge_page(&item.body, answer),
            _ => Ok(()),
        }
    }

    pub(in crate::engine) fn answered(
        &mut self,
        item: &PlanItem<'_>,
        need: &Need,
    ) -> Option<Found<Content>> {
        let answered = self.retrieved.get(need).cloned();
        if item.body.linked.is_none() {
            return answered;
        }
        let Err(refusal) = self.settled(item) else {
            return answered;
        };
        let question = question(self.policy(), &item.body);
        let Some(question) = question.filter(|question| question != need) else {
            return Some(Err(judged(self.context, &item.body, refusal)));
        };
        self.ask([question.clone()]);
        Some(match self.retrieved.get(&question) {
            Some(Ok(Some(answer))) => judge_page(&item.body, answer).map(|()| Some(answer.clone())),
            Some(Ok(None)) => Ok(None),
            Some(Err(other)) => Err(Refusal {
                detail: refusal.detail.then("; ").then(other.detail.clone()),
                ..other.clone()
            }),
            None => Err(judged(self.context, &item.body, refusal)),
        })
    }
}
