# A Homebrew formula that builds embody from source. `.ci/release` replaces the words between @ signs, and writes the result
# to the files of a release. docs/packages.md describes how the formula was tested.
class Embody < Formula
  desc "Mail filter that puts externally stored attachments and pictures into the mail"
  homepage "@URL@"
  url "@URL@/embody-@VERSION@.tar.xz"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", "--profile", "dist", *std_cargo_args
    system bin/"embody", "man", man1
    generate_completions_from_executable(bin/"embody", "completions")
    pkgshare.install "samples"
  end

  test do
    filled = shell_output("#{bin}/embody filter #{pkgshare}/samples/postcard.in.eml")
    assert_equal (pkgshare/"samples/postcard.out.eml").read, filled
  end
end
