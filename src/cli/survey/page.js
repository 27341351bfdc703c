
for (const command of document.querySelectorAll(".act pre")) {
  // Lines are broken before options and names, not inside them. The text stays the same for whoever copies it.
  const pieces = command.textContent.split(/(\s*--[^\s=]+ (?!--)(?:'[^']*'|\S)+|\s*(?:'[^']*'|\S)+)/);
  command.replaceChildren(...pieces.filter(Boolean).flatMap((piece) => {
    const word = document.createElement("span");
    word.textContent = piece.trim();
    return [piece.slice(0, piece.length - piece.trimStart().length), word];
  }));
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  const done = () => {
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  const select = () => {
    getSelection().selectAllChildren(command);
    if (document.execCommand("copy")) done();
  };
  button.onclick = () => {
    if (!navigator.clipboard) return select();
    navigator.clipboard.writeText(command.textContent).then(done, select);
  };
  command.before(button);
}
// Folded sections are printed, too.
addEventListener("beforeprint", () => {
  for (const section of document.querySelectorAll("details")) section.open = true;
});
