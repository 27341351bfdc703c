//! Documents, figures, public types and the layout of the source, held against what is there.

mod figures;
mod first_screen;
mod house;
mod manual;
mod messages;
mod packages;
mod pages;
mod public_types;
mod words;
