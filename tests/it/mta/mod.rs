//! Real mail systems that run the filter, with the recipes in docs/recipes.md.

mod detach_recipes;
mod exim;
mod fetchers;
mod maildrop;
mod milter;
mod milter_dkim;
mod postfix;
mod procmail;
mod sendmail;
mod sieve;
