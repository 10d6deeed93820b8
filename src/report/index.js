const prepare = () => {
  const table = document.querySelector("#runs"), body = table.tBodies[0], rows = [...body.rows];
  const key = (row, k) => row.cells[k].dataset.key ?? row.cells[k].textContent;
  table.querySelectorAll("thead button").forEach((button, k) => button.addEventListener("click", () => {
    const title = button.parentElement, was = title.getAttribute("aria-sort");
    const up = was ? was === "descending" : button.dataset.down === undefined;
    table.querySelectorAll("thead th").forEach(t => t.removeAttribute("aria-sort"));
    title.setAttribute("aria-sort", up ? "ascending" : "descending");
    rows.sort((a, b) => (up ? 1 : -1) * key(a, k).localeCompare(key(b, k), "en", { numeric: true }));
    body.append(...rows);
  }));
  const filter = document.querySelector("#filter"), input = filter.querySelector("input"), said = filter.querySelector("span");
  filter.hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    rows.forEach(row => row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word)));
    said.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
  });
};
prepare();
addEventListener("renewed", prepare);
