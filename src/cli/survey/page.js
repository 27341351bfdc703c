
for (const command of document.querySelectorAll(".act pre")) {
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
