# For Nix, from a checkout: nix-build -E 'with import <nixpkgs> { }; callPackage ./docs/packages/embody.nix { }'
# docs/packages.md says what was tried of it.
{
  lib,
  stdenv,
  rustPlatform,
  installShellFiles,
}:
let
  manifest = builtins.fromTOML (builtins.readFile ../../Cargo.toml);
  # Not what was built here.
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
  # Every crate is on crates.io, with its hash.
  cargoLock.lockFile = ../../Cargo.lock;

  nativeBuildInputs = [ installShellFiles ];

  buildType = "dist";

  # They start mail systems and servers. What is installed is tried below.
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
