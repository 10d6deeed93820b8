{
  // What is on the page is looked at again when the server says that there is something new.
  const ask = async (what, how) => {
    const answer = await fetch(what, { method: how ?? "GET", headers: { "X-Ergodic": "1" } });
    if (!answer.ok) throw new Error(await answer.text());
    return answer;
  };
  const bar = document.createElement("p");
  bar.id = "live";
  const said = document.createElement("span"), button = document.createElement("button");
  said.setAttribute("role", "status");
  button.type = "button";
  bar.append(said, " ", button);
  let stamp, wait = false, refused = "";
  const show = (text, action) => {
    said.textContent = refused ? `${text}; ${refused}` : text;
    button.hidden = !action;
    button.textContent = action === "stop" ? "Stop and save" : "Go on";
    button.dataset.action = action ?? "";
    document.querySelector("header").append(bar);
  };
  button.addEventListener("click", async () => {
    button.disabled = true;
    refused = "";
    try {
      await ask(`/${button.dataset.action}${location.pathname}`, "POST");
    } catch (e) {
      refused = e.message.trim();
    }
    setTimeout(() => { button.disabled = false; look(); }, 1000);
  });
  const renew = async () => {
    const page = new DOMParser().parseFromString(await (await ask(location.pathname)).text(), "text/html");
    const open = [...document.querySelectorAll("details")].map(d => d.open);
    const typed = document.querySelector("#filter input")?.value;
    for (const part of ["header", "nav", "main"]) {
      const [old, now] = [document.querySelector(part), page.querySelector(part)];
      if (old && now) old.replaceWith(now);
    }
    document.querySelectorAll("details").forEach((d, k) => { if (open[k] !== undefined) d.open = open[k]; });
    dispatchEvent(new Event("renewed"));
    const input = document.querySelector("#filter input");
    if (input && typed) {
      input.value = typed;
      input.dispatchEvent(new Event("input"));
    }
  };
  const look = async () => {
    if (wait) return;
    wait = true;
    try {
      const news = await (await ask(`/state${location.pathname}`)).json();
      if (stamp !== undefined && news.stamp !== stamp) {
        refused = "";
        await renew();
      }
      stamp = news.stamp;
      show(news.says, news.action);
    } catch (e) {
      show(`the server does not answer: ${e.message}`);
    }
    wait = false;
  };
  look();
  setInterval(look, 2000);
}
