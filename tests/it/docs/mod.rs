//! Compares documents, figures, public types and the structure of the source with the program.

mod figures;
mod first_screen;
mod house;
mod json;
mod manual;
mod messages;
mod packages;
mod pages;
mod pictures;
mod public_types;
mod shadowing;
mod type_names;
mod words;
