# Rendered by packages/make; belongs into Formula/ of a tap.
class SessionTailor < Formula
  desc "$summary"
  homepage "$homepage"
  version "$version"
  license any_of: ["MIT", "Apache-2.0"]

$systems

  def install
    bin.install "tailor"
    man1.install Dir["man1/*"]
    bash_completion.install "tailor.bash" => "tailor"
    zsh_completion.install "_tailor"
    fish_completion.install "tailor.fish"
    pkgshare.install "launchd" if OS.mac?
  end

  service do
    run [opt_bin/"tailor", "watch"]
    keep_alive successful_exit: false
    process_type :background
    error_log_path var/"log/tailor.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tailor --version")
  end
end
