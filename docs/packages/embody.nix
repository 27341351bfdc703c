# Builds embody from a checkout with Nix:
# nix-build -E 'with import <nixpkgs> { }; callPackage ./docs/packages/embody.nix { }'
# docs/packages.md describes how this file was tested.
{
  lib,
  stdenv,
  rustPlatform,
  installShellFiles,
}:
let
  manifest = builtins.fromTOML (builtins.readFile ../../Cargo.toml);
  # The directory target contains the output of cargo, so it is not part of the source.
  isSource =
    path: type:
    lib.cleanSourceFilter path type && !(type == "directory" && builtins.baseNameOf path == "target");
in
rustPlatform.buildRustPackage {
  pname = manifest.package.name;
  version = manifest.package.version;

  src = lib.cleanSourceWith {
    src = ../..;
    filter = isSource;
  };
  # Cargo.lock contains the hash of each crate, and all crates are on crates.io, so Nix needs no other hashes.
  cargoLock.lockFile = ../../Cargo.lock;

  nativeBuildInputs = [ installShellFiles ];

  buildType = "dist";

  # The tests are not run, because they start mail systems and servers. installCheckPhase tries the installed program.
  doCheck = false;

  postInstall = lib.optionalString (stdenv.buildPlatform.canExecute stdenv.hostPlatform) ''
    $out/bin/embody man pages
    installManPage pages/*.1
    for shell in bash zsh fish; do
      $out/bin/embody completions $shell > embody.$shell
      installShellCompletion --cmd embody --$shell embody.$shell
    done
  '';

  doInstallCheck = stdenv.buildPlatform.canExecute stdenv.hostPlatform;
  installCheckPhase = ''
    $out/bin/embody filter samples/postcard.in.eml | cmp - samples/postcard.out.eml
  '';

  meta = {
    description = manifest.package.description;
    license = with lib.licenses; [
      mit
      asl20
    ];
    mainProgram = "embody";
    platforms = lib.platforms.unix;
  };
}
