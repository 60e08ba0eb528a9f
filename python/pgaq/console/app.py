"""The ASGI application: its paths, who may see them, and the headers of every answer."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from typing import Any, AsyncIterator, Awaitable, Callable
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

import jinja2
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pgaq import db, report
from pgaq.command.common import VERSION, Failure, failure
from pgaq.console import words
from pgaq.console.actions import ACTIONS, FLAGS, Action, Grown, count, given, perform, present, question
from pgaq.console.actions import Refused as NotDone
from pgaq.console.logins import Busy, Login, Logins, Refused
from pgaq.console.pages import PAGES, NotFound, Page, Wrong
from pgaq.metrics.exporter import Exporter
from pgaq.metrics.serve import answer

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
# a report is one document with its own styles; it has no scripts, and the sandbox would not let them run
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; sandbox"
HEADERS = {
    "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip
EVERY = 2.0  # seconds between refreshes of a live page
STREAMS = 6  # live pages of a login
LARGEST = 64 * 1024  # bytes of a form
PATIENCE = 20.0  # seconds in which it must arrive
STATIC = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass
class Settings:
    """How the console is run."""

    dsn: str = ""
    read_only: bool = False
    secure: bool = False  # it is reached by HTTPS: cookies are only sent there
    behind_proxy: bool = False  # the address of a client is in X-Forwarded-For
    hosts: tuple[str, ...] = ()  # names that requests may give as host; none: any
    exporter: Exporter | None = None  # of /metrics and /readyz
    every: float = EVERY


class Console:
    """The handlers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.logins = Logins(settings.dsn, read_only=settings.read_only)
        self.closing = False
        self.cookie = "__Host-pgaq" if settings.secure else "pgaq"
        folder = resources.files("pgaq.console")
        loader = jinja2.FunctionLoader(lambda name: folder.joinpath("templates", name).read_text("utf-8"))
        self.templates = jinja2.Environment(
            loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
        )
        self.templates.filters |= {"drawn": words.shown, "lines": words.lines, "q": words.quoted, "mood": words.mood}
        self.templates.globals |= {
            "curve": words.curve,
            "version": VERSION,
            "words": words,
            "zone": lambda: datetime.now().astimezone().strftime("%Z"),
        }
        self.static = {item.name: item.read_bytes() for item in folder.joinpath("static").iterdir() if item.name.endswith(tuple(STATIC))}

    # -- answers

    def html(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        login = values.get("login")
        more = {"root": _root(request), "login": login, "path": request.url.path, "given": dict(request.query_params), "read_only": self.settings.read_only}  # fmt: skip
        return HTMLResponse(self.templates.get_template(template).render({"with_query": _with_query(request), **more, **values}), status)

    def problem(self, request: Request, status: int, said: str, do: str = "", login: Login | None = None) -> HTMLResponse:
        return self.html(request, "problem.html", status, title="Problem", said=said, do=do, login=login, live=None)

    def nothing(self, request: Request, _: Exception) -> Response:
        return self.problem(request, 404, "There is no such page.", login=self.login_of(request))

    def broken(self, request: Request, _: Exception) -> Response:
        """An error of the console itself.  The server of ASGI is told of it, too, and logs it."""
        answer = self.problem(request, 500, "The console has failed.", "Its log says why; please report it.", self.login_of(request))
        answer.headers.update(HEADERS)  # it is made outside of what adds them
        return answer

    def login_of(self, request: Request, touch: bool = True) -> Login | None:
        return self.logins.find(request.cookies.get(self.cookie), touch)

    # -- pages

    def page(self, page: Page) -> Callable[[Request], Response]:
        def show(request: Request) -> Response:
            login = self.login_of(request)
            if login is None:
                return self.to_login(request)
            status, body, values = self.fragment(page, login, request)
            live = f"{_root(request)}/live{_path(request)}?{request.url.query}"
            title = values.get("heading") or page.title
            return self.html(
                request, "page.html", status, title=title, body=body, login=login, live=live if page.live and status in (200, 503) else None
            )

        return show

    def fragment(self, page: Page, login: Login, request: Request) -> tuple[int, Markup, dict[str, Any]]:
        """Status and HTML of what is in the page, without its frame."""
        given = dict(request.query_params)
        root = _root(request)
        common = {"root": root, "given": given, "login": login, "with_query": _with_query(request), "read_only": self.settings.read_only}
        try:
            values = login.ask(lambda conn: page.show(conn, login, given))
            status, template = 200, page.template
        except FAILURES as error:
            status, said, do = _failed(error, {3: 503}, 500, "Close a page that is open twice.")
            template, values = "said.html", {"said": said, "do": do}
        values["now"] = datetime.now().astimezone()
        body = self.templates.get_template(template).render({**common, **values})
        return status, Markup(body), values

    # -- the same live

    def live(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def stream(request: Request) -> Response:
            login = self.login_of(request, touch=False)
            if login is None:
                return PlainTextResponse("no login\n", 401)
            if login.streams >= STREAMS:
                return PlainTextResponse("too many live pages\n", 429)
            return StreamingResponse(self.events(page, request), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

        return stream

    async def events(self, page: Page, request: Request) -> AsyncIterator[str]:
        """A fragment whenever it has changed, until the login ends: each is drawn for the cookie of this very request."""
        login = self.login_of(request, touch=False)
        if login is None:
            return
        login.streams += 1
        before = ""
        try:
            while not self.closing:
                await asyncio.sleep(self.settings.every)
                login = self.login_of(request, touch=False)
                if login is None or self.closing:
                    yield "event: end\ndata: end\n\n"
                    return
                _, body, _ = await run_in_threadpool(self.fragment, page, login, request)
                yield _event("page", body) if body != before else ": the same\n\n"
                before = body
        finally:
            if login is not None:
                login.streams -= 1

    # -- reports

    def report(self, request: Request) -> Response:
        login = self.login_of(request)
        if login is None:
            return self.to_login(request)
        try:
            snapshots = [int(word) for word in request.query_params.getlist("s") if word.isdecimal() and len(word) < 10]
        except ValueError:
            snapshots = []
        function = {2: "aq.report_awr(%s, %s)", 4: "aq.report_awr_diff(%s, %s, %s, %s)"}.get(len(snapshots))
        if function is None:
            return self.problem(request, 400, "A report takes two snapshots, a comparison four.", login=login)
        try:
            model = login.ask(lambda conn: db.value(conn, f"SELECT {function}", snapshots))
        except FAILURES as error:
            return self.problem(request, *_failed(error, {}, 500), login)
        headers = {"Content-Security-Policy": REPORT_POLICY}
        if request.query_params.get("download"):
            headers["Content-Disposition"] = f'attachment; filename="pgaq-report-{"-".join(map(str, snapshots))}.html"'
        return HTMLResponse(report.page(model), headers=headers)

    # -- changes

    async def act(self, request: Request) -> Response:
        """Asks with the number that it concerns (GET), and does it (POST)."""
        login = self.login_of(request)
        if login is None:
            return self.to_login(request)
        name = request.path_params["name"]
        action = ACTIONS.get(name)
        if action is None:
            return self.problem(request, 404, "There is no such action.", login=login)
        if self.settings.read_only:
            return self.problem(request, 403, "This console changes nothing.", login=login)
        # what names the messages stays in the address: browsers change line ends in the fields of a form, and errors have some
        form = {**request.query_params, **(await _form(request) if request.method == "POST" else {})}
        if request.method == "POST" and not await self.trusted(request, login):
            return self.problem(request, 403, "The form was not made by this console.", "Load the page again.", login)
        try:
            parameters = given(action, form)
            if request.method == "POST":
                await run_in_threadpool(
                    login.ask, lambda conn: perform(conn, name, action, parameters, form.get("number", "")), change=True
                )
                return RedirectResponse(f"{_root(request)}/log", 303)
            number, now = await run_in_threadpool(
                login.ask, lambda conn: (count(conn, action, parameters), present(conn, action, parameters))
            )
        except Grown as error:
            said = "Nothing was done: more messages would be concerned than the question has said. If more keep arriving, stop the queue first."
            return self.ask(request, login, action, parameters, error.args[0], said, 409)
        except FAILURES as error:
            return self.problem(request, *_failed(error, {3: 503, 5: 403, 6: 404}, 400), login)
        return self.ask(request, login, action, parameters, number, now=now)

    def ask(
        self,
        request: Request,
        login: Login,
        action: Action,
        parameters: dict[str, str],
        number: int | None,
        said: str = "",
        status: int = 200,
        now: dict[str, Any] | None = None,
    ) -> HTMLResponse:
        """The question; said: why it is asked again; now: present values of what the form asks for."""
        back = f"{_root(request)}/{action.back or 'schedules?'}{words.quoted(parameters[action.object]) if action.back else ''}"
        return self.html(
            request, "ask.html", status, title=action.title, login=login, live=None, action=action, parameters=parameters, flags=FLAGS,
            question=question(action, parameters, number), number=number, back=back, said=said, now=now or {},
        )  # fmt: skip

    # -- login

    def to_login(self, request: Request) -> Response:
        root = _root(request)
        here = _path(request) + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{root}/login?{urlencode({'next': here})}" if here != "/" else f"{root}/login", 303)

    async def login(self, request: Request) -> Response:
        if request.method == "GET":
            return self.login_form(request, "")
        form = await _form(request)
        token = request.cookies.get(f"{self.cookie}-login", "")
        name, _, signature = token.partition(".")
        good = name and hmac.compare_digest(signature.encode(), self.logins.sign(name).encode()) and hmac.compare_digest(token.encode(), form.get("token", "").encode())  # fmt: skip
        if not good or not _same_origin(request, self.settings):
            return self.login_form(request, "The form was too old. Try again.", 403)
        try:
            cookie = await run_in_threadpool(self.logins.log_in, form.get("role", ""), form.get("password", ""), self.client(request))
        except Refused as error:
            return self.login_form(request, str(error), 403)
        root = _root(request)
        response = RedirectResponse(root + _inside(request.query_params.get("next", "/")), 303)
        self.logins.log_out(request.cookies.get(self.cookie)) if self.login_of(request) else None
        response.set_cookie(self.cookie, cookie, **self.cookie_options(request))
        response.delete_cookie(f"{self.cookie}-login", path=self.cookie_path(request))
        return response

    def login_form(self, request: Request, said: str, status: int = 200) -> Response:
        name = secrets.token_urlsafe(16)
        token = f"{name}.{self.logins.sign(name)}"
        response = self.html(request, "login.html", status, title="Log in", said=said, token=token, live=None)
        response.set_cookie(f"{self.cookie}-login", token, **{**self.cookie_options(request), "max_age": 3600})
        return response

    async def log_out(self, request: Request) -> Response:
        login = self.login_of(request)
        if login is not None:
            if not await self.trusted(request, login):
                return self.problem(request, 403, "The form was not made by this console.", "Load the page again.", login)
            self.logins.log_out(request.cookies.get(self.cookie))
        response = RedirectResponse(f"{_root(request)}/login", 303)
        response.delete_cookie(self.cookie, path=self.cookie_path(request))
        return response

    async def trusted(self, request: Request, login: Login) -> bool:
        """Whether a form came from a page of this login."""
        form = await _form(request)
        return hmac.compare_digest(form.get("csrf", "").encode(), login.csrf.encode()) and _same_origin(request, self.settings)

    def cookie_path(self, request: Request) -> str:
        return "/" if self.settings.secure else _root(request) + "/"

    def cookie_options(self, request: Request) -> dict[str, Any]:
        return {
            "httponly": True,
            "samesite": "lax",
            "secure": self.settings.secure,
            "path": self.cookie_path(request),
            "max_age": 12 * 3600,
        }

    def client(self, request: Request) -> str:
        """The address that failed logins are counted for: the last one that the proxy has added."""
        if self.settings.behind_proxy and request.headers.get("x-forwarded-for"):
            return _without_port(request.headers["x-forwarded-for"].rpartition(",")[2].strip()[:64])
        return request.client.host if request.client else ""

    # -- the rest

    def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.static:
            return PlainTextResponse("not found\n", 404)
        return Response(self.static[name], media_type=STATIC["." + name.rpartition(".")[2]], headers={"Cache-Control": "max-age=3600"})

    def health(self, request: Request) -> Response:
        path = _path(request)
        if self.settings.exporter is None:
            return PlainTextResponse("ok\n" if path == "/healthz" else "not found\n", 200 if path == "/healthz" else 404)
        status, kind, text = answer(self.settings.exporter, path)
        return Response(text, status, media_type=None, headers={"Content-Type": kind})

    def routes(self) -> list[Route]:
        found = [Route("/", lambda request: RedirectResponse(f"{_root(request)}/queues", 303))]
        for path, page in PAGES.items():
            found.append(Route(f"/{path}", self.page(page)))
            if page.live:
                found.append(Route(f"/live/{path}", self.live(page)))
        return [
            *found, Route("/report", self.report), Route("/act/{name}", self.act, methods=["GET", "POST"]), Route("/login", self.login, methods=["GET", "POST"]), Route("/logout", self.log_out, methods=["POST"]),
            Route("/static/{name}", self.file), *(Route(path, self.health) for path in ("/metrics", "/healthz", "/readyz")),
        ]  # fmt: skip


class Headers:
    """ASGI: the headers of every answer, and the hosts that are answered."""

    def __init__(self, app: Any, console: Console) -> None:
        self.app, self.console = app, console

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        hosts = {each.lower() for each in self.console.settings.hosts}
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if hosts and (_parts(f"//{host}").hostname or "") not in hosts:
            await PlainTextResponse("this host is not served here\n", 400)(scope, receive, send)
            return

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((n.lower().encode(), v.encode()) for n, v in HEADERS.items() if n.lower().encode() not in there),
                ]
            await send(message)

        await self.app(scope, receive, sent)


def application(settings: Settings) -> Starlette:
    """The console as an ASGI application.  Mounted into another one, it needs that one to run its lifespan."""
    console = Console(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        console.closing = True
        console.logins.close()

    made = Starlette(routes=console.routes(), lifespan=lifespan, exception_handlers={404: console.nothing, Exception: console.broken})
    made.add_middleware(Headers, console=console)
    made.state.console, made.state.lifespan = console, lifespan
    return made


# -- small things


def _said(error: db.Error) -> Failure:
    """What the server said, as on the command line; the text of a connection's error can have names of hosts, which are the operator's."""
    found = failure(error)
    if found.code == 3:
        return Failure("The database does not answer.", "The page comes back when it does.", 3)
    return found


FAILURES = (NotFound, Wrong, NotDone, Busy, Refused, db.Error)


def _failed(error: Exception, statuses: dict[int, int], other: int, busy: str = "") -> tuple[int, str, str]:
    """Status of the answer, what is said, and what to do; statuses: of errors of the server, by the exit code of the command."""
    if isinstance(error, db.Error):
        found = _said(error)
        return statuses.get(found.code, other), found.message, found.do
    if isinstance(error, Busy):
        return 503, "All connections of this login are in use.", busy
    return 404 if isinstance(error, NotFound) else 503 if isinstance(error, Refused) else 400, str(error), ""


def _root(request: Request) -> str:
    """Where the console is mounted; empty: at the host's root."""
    return request.scope.get("root_path", "")


def _path(request: Request) -> str:
    """The path of the request in the console."""
    return request.url.path.removeprefix(_root(request))


def _with_query(request: Request) -> Callable[..., str]:
    """The query of this page with other values; without those that are None."""

    def changed(**others: Any) -> str:
        values = {**request.query_params, **others}
        return "?" + urlencode({name: value for name, value in values.items() if value not in (None, "")})

    return changed


def _event(name: str, body: str) -> str:
    return f"event: {name}\n" + "".join(f"data: {line}\n" for line in body.splitlines()) + "\n"


def _parts(url: str) -> SplitResult:
    """The parts of a URL; none of what cannot be one."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def _without_port(address: str) -> str:
    """An address of X-Forwarded-For, to which some proxies add the port."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def _inside(path: str) -> str:
    """A path of this console; anything else is its first page."""
    parts = _parts(path)
    good = (
        path.startswith("/")
        and not path.startswith(("//", "/\\"))
        and not parts.scheme
        and not parts.netloc
        and path.isprintable()
        and "\\" not in path
    )
    return path if good else "/"


def _same_origin(request: Request, settings: Settings) -> bool:
    """A browser says from which page a form comes."""
    origin = request.headers.get("origin")
    if origin is None:
        return True
    return _parts(origin).netloc == request.headers.get("host")


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; read once."""
    if not hasattr(request.state, "form"):
        body, complete = b"", False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > LARGEST:
                        break
                else:
                    complete = True
        request.state.form = {}
        if complete:
            with contextlib.suppress(ValueError):  # too many fields
                request.state.form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100))
    return request.state.form
